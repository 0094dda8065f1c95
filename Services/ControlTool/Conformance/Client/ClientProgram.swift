import Foundation
import Glibc
import Synchronization

/// The client program under test: started, killed and started again, and everything that it has printed.
final class ClientProgram: Sendable {
    /// What one start has printed.
    private struct Output: Sendable {
        let file: URL
        var offset: UInt64 = 0
        var lines: [Line] = []
    }

    /// An oplog, and when the kit has seen it.
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

    /// - Parameter folder: for what it prints.
    init(folder: URL) { self.folder = folder }

    /// Starts it; the one before must have ended.
    func start(_ command: [String]) throws {
        try state.withLock { state in
            let file = folder.appending(path: "out-\(state.outputs.count)")
            state.process = try ChildProcess(
                command, output: file, errors: folder.appending(path: "err-\(state.outputs.count)"))
            state.outputs.append(Output(file: file))
        }
    }

    /// The exit status of the present start; nil while it runs.
    var status: Int32? { state.withLock { $0.process }?.status }

    /// Kills it now, without waiting for the end.
    func kill() { state.withLock { $0.process }?.signal(SIGKILL) }

    /// Kills it and waits for the end.
    func killed() async {
        kill()
        _ = await state.withLock { $0.process }?.ends(within: .seconds(5))
    }

    /// Asks it to end; false when it does not within 5 s, and it is killed then.
    @discardableResult
    func stop() async -> Bool {
        guard let process = state.withLock({ $0.process }) else { return true }
        process.signal(SIGTERM)
        if await process.ends(within: .seconds(5)) { return true }
        await killed()
        return false
    }

    /// What it has printed, start by start.
    ///
    /// - Throws: `Mismatch` for a line that is none of the contract.
    func runs() throws -> [[Line]] {
        try state.withLock { state in
            for index in state.outputs.indices { try Self.read(&state.outputs[index]) }
            return state.outputs.map(\.lines)
        }
    }

    /// All oplogs that it has printed, in order.
    func shown() throws -> [ShownOplog] { try runs().flatMap { $0 }.map(\.oplog) }

    /// Takes the whole lines that have come since the last look.
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

    /// The end of what it has said on standard error, in one line.
    var lastWords: String {
        let count = state.withLock { $0.outputs.count }
        let file = folder.appending(path: "err-\(max(0, count - 1))")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(3).joined(separator: " / ")
    }
}
