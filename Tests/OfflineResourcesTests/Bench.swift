import Foundation
import Logging
import Synchronization

@testable import OfflineResources

/// A client with a backend of its own, a clock that only a test moves, and a store that can be opened again.
final class Bench: Sendable {
    let backend: Backend
    let transport: TestTransport
    let folder: URL
    let told = Told()
    private let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))

    private init(_ backend: Backend, url: String) throws {
        self.backend = backend
        transport = try TestTransport(url: url)
        folder = FileManager.default.temporaryDirectory.appending(path: "resources-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Runs the body with a bench whose backend runs.
    static func with(_ body: @Sendable @escaping (Bench) async throws -> Void) async throws {
        let backend = Backend()
        try await backend.serve { url in try await body(Bench(backend, url: url)) }
    }

    func pass(_ seconds: TimeInterval) { now.withLock { $0 += seconds } }
    var time: Date { now.withLock { $0 } }

    /// Starts the app: opens the store, also again.
    func start(
        user: String? = "u1", _ configure: (inout ResourceConfiguration) -> Void = { _ in }
    ) throws -> ResourceClient {
        var configuration = ResourceConfiguration(storePath: folder.appending(path: "resources.sqlite").path)
        configuration.callbacks = told
        configuration.clock = { [weak self] in self?.time ?? .distantPast }
        configure(&configuration)
        let client = try ResourceClient(
            configuration: configuration, transport: transport,
            logger: Logger(label: "resources") { _ in
                SwiftLogNoOpLogHandler()
            })
        try client.bind(userID: user)
        return client
    }
}
