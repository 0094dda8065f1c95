import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// Values that the service is to keep for the user of one connection, on their way to the gateway: one frame at a time;
/// pure.
struct ClientParameters {
    /// A frame that is not answered within this time ends the connection.
    static let answerLimit = Duration.seconds(30)
    /// Before what could not be kept goes out again.
    private static let pause = Duration.seconds(1)

    private struct Frame {
        let number: UInt32
        let parameters: [DeviceParameter]
        let userID: String
        let sentAt: ContinuousClock.Instant
    }

    /// What an answer says of a frame's values.
    struct Answer: Hashable, Sendable {
        let parameters: [DeviceParameter]
        let userID: String
        /// Nil: the service keeps them; otherwise why it never will.
        let refusal: String?
    }

    private var lastNumber: UInt32 = 0
    private var frame: Frame?
    private var pausedUntil: ContinuousClock.Instant?

    /// When something is to be done at the latest.
    var deadline: ContinuousClock.Instant? { frame.map { $0.sentAt + Self.answerLimit } ?? pausedUntil }

    /// Whether a frame may go out now.
    func isFree(at now: ContinuousClock.Instant) -> Bool { frame == nil && pausedUntil.map { $0 <= now } ?? true }

    /// Whether the pause of what could not be kept has just come to its end.
    func isDue(at now: ContinuousClock.Instant) -> Bool { pausedUntil != nil && isFree(at: now) }

    /// Whether the answer has not come in time.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        frame.map { now >= $0.sentAt + Self.answerLimit } ?? false
    }

    /// The frame for values, at least one.
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

    /// What the gateway says; nil: it is not about the frame that is out, or the values go out again later.
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

    /// Another user is bound: the answer to what was sent before is nobody's, and it is sent again.
    mutating func userChanged() { (frame, pausedUntil) = (nil, nil) }
}

extension DeviceParameter {
    /// The value as the protocol has it.
    var wire: Mss_Device_V1_Parameter {
        .with {
            $0.bizType = bizType.text
            $0.name = name
            $0.value = value?.json ?? ""
        }
    }
}
