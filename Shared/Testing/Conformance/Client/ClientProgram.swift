import ChildProcesses
import Foundation
import Glibc
import Synchronization

/// The client program under test, over all its starts, with its output.
final class ClientProgram: Sendable {
    /// The output of one start.
    private struct Output: Sendable {
        let file: URL
        var offset: UInt64 = 0
        var lines: [Line] = []
    }

    /// A printed oplog, and the time at which the suite read it.
    struct Line: Sendable {
        let oplog: ShownOplog
        let at: ContinuousClock.Instant
    }

    private struct State: Sendable {
        var process: ChildProcess?
        var outputs: [Output] = []
    }

    private let folder: URL
    private let state = Mutex(State())

    /// - Parameter folder: folder for the output files.
    init(folder: URL) { self.folder = folder }

    /// Starts the program. The previous process must have ended.
    func start(_ command: [String]) throws {
        try state.withLock { state in
            let file = folder.appending(path: "out-\(state.outputs.count)")
            state.process = try ChildProcess(
                command, output: .file(file), errors: .file(folder.appending(path: "err-\(state.outputs.count)")))
            state.outputs.append(Output(file: file))
        }
    }

    /// Exit status of the current process. The value is nil while it runs.
    var status: Int32? { state.withLock { $0.process }?.status }

    /// Kills the program without waiting for its end.
    func kill() { state.withLock { $0.process }?.signal(SIGKILL) }

    /// Kills the program and waits for its end.
    func killed() async {
        kill()
        _ = await state.withLock { $0.process }?.ends(within: .seconds(5))
    }

    /// Sends SIGTERM. After 5 s it kills the program and returns false.
    @discardableResult
    func stop() async -> Bool {
        guard let process = state.withLock({ $0.process }) else { return true }
        process.signal(SIGTERM)
        if await process.ends(within: .seconds(5)) { return true }
        await killed()
        return false
    }

    /// The printed oplogs of each start.
    ///
    /// - Throws: `Mismatch` for a line that violates the contract.
    func runs() throws -> [[Line]] {
        try state.withLock { state in
            for index in state.outputs.indices { try Self.read(&state.outputs[index]) }
            return state.outputs.map(\.lines)
        }
    }

    /// All printed oplogs, in order.
    func shown() throws -> [ShownOplog] { try runs().flatMap { $0 }.map(\.oplog) }

    /// Reads the complete lines since the last call.
    private static func read(_ output: inout Output) throws {
        let file = try FileHandle(forReadingFrom: output.file)
        defer { try? file.close() }
        try file.seek(toOffset: output.offset)
        let data = try file.readToEnd() ?? Data()
        guard let end = data.lastIndex(of: UInt8(ascii: "\n")) else { return }
        output.offset += UInt64(end - data.startIndex + 1)
        for line in data[..<end].split(separator: UInt8(ascii: "\n")) {
            do {
                let oplog = try JSONDecoder().decode(ShownOplog.self, from: Data(line))
                output.lines.append(Line(oplog: oplog, at: .now))
            } catch {
                throw Mismatch(
                    expected: "a JSON object with bizType and oplogId per line",
                    seen: String(decoding: line.prefix(200), as: UTF8.self))
            }
        }
    }

    /// The last lines of standard error, in one line.
    var lastErrorLines: String {
        let count = state.withLock { $0.outputs.count }
        let file = folder.appending(path: "err-\(max(0, count - 1))")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(3).joined(separator: " / ")
    }
}
