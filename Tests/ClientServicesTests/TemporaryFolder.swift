import Foundation

/// The folder of one test; it is removed with this object.
final class TemporaryFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("client-services-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// All bytes of the files whose names begin with the prefix, as SQLite and other code have written them.
    func bytes(prefix: String) throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: url.path).filter { $0.hasPrefix(prefix) }
            .reduce(into: Data()) { $0 += try Data(contentsOf: url.appendingPathComponent($1)) }
    }
}
