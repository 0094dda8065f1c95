import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The operations of one connection's user on their way to the gateway, with at most one frame in flight. A pure value.
struct ClientOperations {
    /// The longest wait for a reply; then the connection ends. A gateway replies sooner in every case, and accepts no
    /// second frame before.
    static let answerLimit = Duration.seconds(30)
    /// The longest pause before refused operations are sent again.
    private static let longestPause = Duration.seconds(60)

    private struct Frame {
        let number: UInt32
        let ids: [String]
        let sentAt: ContinuousClock.Instant
    }

    /// The reply about the operations of a frame.
    struct Answer: Hashable, Sendable {
        /// The ids of the operations that the service has accepted.
        var taken: [String] = []
        /// The operations that the service will never accept.
        var over: [OperationRefusal] = []
        /// The ids of the operations that the service does not have.
        var free: [String] = []
    }

    private var lastNumber: UInt32 = 0
    private var frame: Frame?
    /// No frame is sent before another bind.
    private var waitsForBind = false
    private var pausedUntil: ContinuousClock.Instant?
    private var pauses = 0

    /// The time of the next timeout or retry.
    var deadline: ContinuousClock.Instant? {
        if let frame { return frame.sentAt + Self.answerLimit }
        return waitsForBind ? nil : pausedUntil
    }

    /// Whether a frame can be sent now.
    func isFree(at now: ContinuousClock.Instant) -> Bool {
        frame == nil && !waitsForBind && pausedUntil.map { $0 <= now } ?? true
    }

    /// Whether the pause after a refusal has just ended.
    func isDue(at now: ContinuousClock.Instant) -> Bool { pausedUntil != nil && isFree(at: now) }

    /// Whether the reply has not arrived in time.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        frame.map { now >= $0.sentAt + Self.answerLimit } ?? false
    }

    /// Returns the frame for at least one operation.
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

    /// Handles a reply of the gateway. Returns nil when the reply is not for the frame in flight.
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

    /// Forgets the frame in flight, because another user or session is bound. Its operations are sent again when their
    /// user is bound.
    mutating func userChanged() {
        frame = nil
        waitsForBind = false
        (pausedUntil, pauses) = (nil, 0)
    }
}
