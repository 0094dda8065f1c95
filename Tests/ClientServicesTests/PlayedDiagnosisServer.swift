import Synchronization

@testable import ClientServices

/// A server for diagnosis uploads: it accepts parts, or fails as a test requires.
final class PlayedDiagnosisServer: DiagnosisUploader {
    struct Failure: Error {}

    struct Refusal: Hashable {
        let taskID: String
        let run: Int
        let reason: DiagnosisRefusal
    }

    enum Mood: Sendable {
        case takes
        /// Answers that it does not want the task.
        case refuses(String)
        /// The next calls, of this number, fail; every second of them after the part was recorded.
        case fails(Int)
        /// Does not answer until the call is cancelled.
        case hangs
        /// Answers this number of calls; the next call records the part and does not answer until it is cancelled.
        case takesThenHangs(Int)
    }

    private struct State {
        var mood = Mood.takes
        var parts: [DiagnosisPart] = []
        var refusals: [Refusal] = []
        var cancelled = 0
    }

    private let state = Mutex(State())
    /// One element for each call that has ended, and one for each call that begins to hang.
    let calls: AsyncStream<Void>
    private let called: AsyncStream<Void>.Continuation

    init() { (calls, called) = AsyncStream.makeStream(of: Void.self) }

    var parts: [DiagnosisPart] { state.withLock { $0.parts } }
    var refusals: [Refusal] { state.withLock { $0.refusals } }
    var cancelled: Int { state.withLock { $0.cancelled } }
    func set(_ mood: Mood) { state.withLock { $0.mood = mood } }

    /// The file from the parts of a task, each number once, by the digest of the whole.
    func file(_ taskID: String, sha256: String) -> [UInt8] {
        let numbered = Dictionary(
            parts.filter { $0.taskID == taskID && $0.fileSHA256 == sha256 }.map { ($0.number, $0.bytes) },
            uniquingKeysWith: { $1 })
        return numbered.keys.sorted().flatMap { numbered[$0] ?? [] }
    }

    func submit(_ part: DiagnosisPart) async throws -> DiagnosisAnswer {
        try await answer { $0.parts.append(part) }
    }

    func refuse(taskID: String, run: Int, reason: DiagnosisRefusal) async throws {
        _ = try await answer { $0.refusals.append(Refusal(taskID: taskID, run: run, reason: reason)) }
    }

    private func answer(_ record: @Sendable (inout State) -> Void) async throws -> DiagnosisAnswer {
        defer { called.yield() }
        let isHanging = try state.withLock { state in
            switch state.mood {
            case .takes:
                record(&state)
                return false
            case .refuses: return false
            case .fails(let left):
                state.mood = left > 1 ? .fails(left - 1) : .takes
                if left % 2 == 0 { record(&state) }
                throw Failure()
            case .hangs: return true
            case .takesThenHangs(let left):
                record(&state)
                state.mood = .takesThenHangs(left - 1)
                return left < 1
            }
        }
        if isHanging {
            called.yield()
            let never = AsyncStream<Void>.makeStream()
            for await _ in never.stream {}
            state.withLock { $0.cancelled += 1 }
            throw CancellationError()
        }
        if case .refuses(let why) = state.withLock({ $0.mood }) { return .refused(why) }
        return .taken
    }
}
