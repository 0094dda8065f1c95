import Foundation

/// A folder of one test, gone when nobody holds it any more.
final class TemporaryFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("client-services-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// All bytes of the files whose names begin so, as SQLite and others have written them.
    func bytes(prefix: String) throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: url.path).filter { $0.hasPrefix(prefix) }
            .reduce(into: Data()) { $0 += try Data(contentsOf: url.appendingPathComponent($1)) }
    }
}
