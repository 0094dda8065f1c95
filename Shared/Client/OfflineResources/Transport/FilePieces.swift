import Concurrency
import Foundation

/// Reads and writes a file in pieces, on a thread that can wait for the disk.
actor FilePieces {
    /// The size of a piece that is read, in bytes.
    static let size = 65_536

    private nonisolated let queue = BlockingExecutor(label: "offline-files")
    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    private let handle: FileHandle

    /// Opens a file to read it.
    init(reading file: URL) throws { handle = try FileHandle(forReadingFrom: file) }

    /// Opens a file to write it, and creates it when it is missing.
    init(writing file: URL) throws {
        if !FileManager.default.fileExists(atPath: file.path) { try Data().write(to: file) }
        handle = try FileHandle(forUpdating: file)
    }

    deinit { try? handle.close() }

    /// Reads the piece at an offset.
    ///
    /// - Returns: at most `limit` bytes; empty at the end of the file.
    func read(at offset: Int64, limit: Int64) throws -> [UInt8] {
        try handle.seek(toOffset: UInt64(offset))
        return [UInt8](try handle.read(upToCount: Int(min(limit, Int64(Self.size)))) ?? Data())
    }

    /// Cuts the file at an offset; the next piece is written there.
    func cut(at offset: Int64) throws { try handle.truncate(atOffset: UInt64(offset)) }

    /// Writes a piece after the last one.
    func append(_ piece: [UInt8]) throws { try handle.write(contentsOf: piece) }

    /// Waits until all pieces are on the disk.
    func flush() throws { try handle.synchronize() }
}
