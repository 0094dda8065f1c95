import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The parameter values of one connection's user on their way to the service, with at most one frame in flight. A pure
/// value.
struct ClientParameters {
    /// The longest wait for a reply; then the connection ends.
    static let answerLimit = Duration.seconds(30)
    /// The pause before values that the service could not store are sent again.
    private static let pause = Duration.seconds(1)

    private struct Frame {
        let number: UInt32
        let parameters: [DeviceParameter]
        let userID: String
        let sentAt: ContinuousClock.Instant
    }

    /// The reply about the values of a frame.
    struct Answer: Hashable, Sendable {
        let parameters: [DeviceParameter]
        let userID: String
        /// The value is nil when the service stores the values; otherwise the reason why it never will.
        let refusal: String?
    }

    private var lastNumber: UInt32 = 0
    private var frame: Frame?
    private var pausedUntil: ContinuousClock.Instant?

    /// The time of the next timeout or retry.
    var deadline: ContinuousClock.Instant? { frame.map { $0.sentAt + Self.answerLimit } ?? pausedUntil }

    /// Whether a frame can be sent now.
    func isFree(at now: ContinuousClock.Instant) -> Bool { frame == nil && pausedUntil.map { $0 <= now } ?? true }

    /// Whether the pause after a failure has just ended.
    func isDue(at now: ContinuousClock.Instant) -> Bool { pausedUntil != nil && isFree(at: now) }

    /// Whether the reply has not arrived in time.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        frame.map { now >= $0.sentAt + Self.answerLimit } ?? false
    }

    /// Returns the frame for at least one value.
    mutating func send(
        _ parameters: [DeviceParameter], ofUser userID: String, bindNumber: UInt32, now: ContinuousClock.Instant
    ) -> Mss_Device_V1_Packet {
        lastNumber += 1
        let sent = Array(parameters.prefix(Limits.deviceParameters))
        frame = Frame(number: lastNumber, parameters: sent, userID: userID, sentAt: now)
        pausedUntil = nil
        return .with {
            $0.keepParameters.number = lastNumber
            $0.keepParameters.bindNumber = bindNumber
            $0.keepParameters.parameters = sent.map(\.wire)
        }
    }

    /// Handles a reply of the gateway. Returns nil when the reply is not for the frame in flight, or when the values
    /// are sent again later.
    mutating func answered(_ reply: Mss_Device_V1_ParametersKept, now: ContinuousClock.Instant) -> Answer? {
        guard let sent = frame, sent.number == reply.number else { return nil }
        frame = nil
        switch reply.refusal {
        case .none: return Answer(parameters: sent.parameters, userID: sent.userID, refusal: nil)
        case .invalid: return Answer(parameters: sent.parameters, userID: sent.userID, refusal: reply.reason)
        default:
            pausedUntil = now + Self.pause
            return nil
        }
    }

    /// Forgets the frame in flight, because another user is bound. Its values are sent again when their user is bound.
    mutating func userChanged() { (frame, pausedUntil) = (nil, nil) }
}

extension DeviceParameter {
    /// The value in the form of the protocol.
    var wire: Mss_Device_V1_Parameter {
        .with {
            $0.bizType = bizType.text
            $0.name = name
            $0.value = value?.json ?? ""
        }
    }
}
