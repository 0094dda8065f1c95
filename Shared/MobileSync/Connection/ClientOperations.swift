import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The operations of one connection's user on their way to the gateway: one frame at a time; pure.
struct ClientOperations {
    /// A frame that is not answered within this time ends the connection: a gateway answers sooner, whatever became of
    /// it, and takes no second one before.
    static let answerLimit = Duration.seconds(30)
    /// The longest pause before what could not be taken goes out again.
    private static let longestPause = Duration.seconds(60)

    private struct Frame {
        let number: UInt32
        let ids: [String]
        let sentAt: ContinuousClock.Instant
    }

    /// What an answer says of a frame's operations.
    struct Answer: Hashable, Sendable {
        /// The service has them.
        var taken: [String] = []
        /// It will never take them.
        var over: [OperationRefusal] = []
        /// It does not have them.
        var free: [String] = []
    }

    private var lastNumber: UInt32 = 0
    private var frame: Frame?
    /// Nothing goes out before a user is bound anew.
    private var waitsForBind = false
    private var pausedUntil: ContinuousClock.Instant?
    private var pauses = 0

    /// When something is to be done at the latest.
    var deadline: ContinuousClock.Instant? {
        if let frame { return frame.sentAt + Self.answerLimit }
        return waitsForBind ? nil : pausedUntil
    }

    /// Whether a frame may go out now.
    func isFree(at now: ContinuousClock.Instant) -> Bool {
        frame == nil && !waitsForBind && pausedUntil.map { $0 <= now } ?? true
    }

    /// Whether the pause of what could not be taken has just come to its end.
    func isDue(at now: ContinuousClock.Instant) -> Bool { pausedUntil != nil && isFree(at: now) }

    /// Whether the answer has not come in time.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        frame.map { now >= $0.sentAt + Self.answerLimit } ?? false
    }

    /// The frame for operations, at least one.
    mutating func send(
        _ operations: [DeviceOperation], bindNumber: UInt32, now: ContinuousClock.Instant
    ) -> Mss_Device_V1_Packet {
        lastNumber += 1
        frame = Frame(number: lastNumber, ids: operations.map(\.id), sentAt: now)
        pausedUntil = nil
        return .with {
            $0.submitOperations.number = lastNumber
            $0.submitOperations.bindNumber = bindNumber
            $0.submitOperations.operations = operations.map(\.wire)
        }
    }

    /// What the gateway says; nil: it is not about the frame that is out.
    mutating func answered(
        _ reply: Mss_Device_V1_OperationsTaken, now: ContinuousClock.Instant
    ) -> Answer? {
        guard let sent = frame, sent.number == reply.number else { return nil }
        frame = nil
        var answer = Answer()
        var refused: [String: OperationRefusal] = [:]
        for refusal in reply.refusals {
            refused[refusal.operationID] = OperationRefusal(
                operationID: refusal.operationID, code: refusal.code, message: refusal.message)
        }
        var isPaused = false
        for id in sent.ids {
            guard let refusal = refused[id] else {
                answer.taken.append(id)
                continue
            }
            switch OperationRefusalCode.remedy(of: refusal.code) {
            case .none: answer.over.append(refusal)
            case .bind:
                waitsForBind = true
                answer.free.append(id)
            case .later:
                isPaused = true
                if refusal.code == OperationRefusalCode.tooMany { answer.free.append(id) }
            }
        }
        pauses = isPaused ? pauses + 1 : 0
        if isPaused {
            let pause = min(Self.longestPause, .seconds(1 << min(pauses - 1, 6)))
            pausedUntil = now + max(pause, .milliseconds(Int64(min(reply.retryAfterMs, 3_600_000))))
        }
        return answer
    }

    /// Another user or session is bound: what was sent under the one before is sent again when its user is back.
    mutating func userChanged() {
        frame = nil
        waitsForBind = false
        (pausedUntil, pauses) = (nil, 0)
    }
}
