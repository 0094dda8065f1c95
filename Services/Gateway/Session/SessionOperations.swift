import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The effect of a frame with changes for the user.
enum UserWriteOutcome {
    case actions([SessionAction])
    /// The frame waits for a verdict. `refusal`: the answer if none can be requested.
    case awaitsVerdict(refusal: SessionAction)
}

/// The device operations of a session that are not answered yet; pure.
struct SessionOperations {
    /// Delay before a device repeats operations that the service could not accept.
    static let pauseMilliseconds: UInt32 = 1_000

    /// One frame.
    struct Frame: Hashable, Sendable {
        let number: UInt32
        let ids: [String]

        /// The answer to a frame when none of its operations was accepted.
        func refusal(_ code: UInt32, _ message: String, retryAfterMilliseconds: UInt32 = 0) -> Mss_Device_V1_Packet {
            .operationsTaken(
                number, refusals: ids.map { OperationRefusal(operationID: $0, code: code, message: message) },
                retryAfterMilliseconds: retryAfterMilliseconds)
        }

        /// The answer to a frame that the device repeats after a pause.
        func postponement(_ message: String) -> Mss_Device_V1_Packet {
            refusal(
                OperationRefusalCode.unavailable, message,
                retryAfterMilliseconds: SessionOperations.pauseMilliseconds)
        }
    }

    /// The frame in flight; one at a time.
    private(set) var submitted: Frame?
    /// The highest number of a frame so far; 0: none.
    private var lastNumber: UInt32 = 0

    /// Resets the state of the user: the reply to a frame of the former bind is ignored.
    mutating func forgetUser() { submitted = nil }

    /// Processes a frame of operations.
    ///
    /// - Parameter eligibility: nil: the Connect is not accepted yet.
    mutating func receive(
        _ frame: Mss_Device_V1_SubmitOperations, by eligibility: Eligibility?, in context: SessionContext
    ) -> UserWriteOutcome {
        func violation(_ reason: String) -> UserWriteOutcome { .actions([.close(.protocolViolation, reason)]) }
        guard frame.number > lastNumber else { return violation("the number of SubmitOperations must rise") }
        guard (1...Limits.frameOperations).contains(frame.operations.count) else {
            return violation("a frame has 1 to \(Limits.frameOperations) operations")
        }
        guard submitted == nil else {
            return violation("SubmitOperations was sent before the answer to the last one")
        }
        lastNumber = frame.number
        return submit(frame, by: eligibility, in: context)
    }

    /// Sends a frame to the relay, refuses it, or keeps it until the next verdict.
    mutating func submit(
        _ frame: Mss_Device_V1_SubmitOperations, by eligibility: Eligibility?, in context: SessionContext
    ) -> UserWriteOutcome {
        let asked = Frame(number: frame.number, ids: frame.operations.map(\.operationID))
        submitted = nil
        guard let eligibility else {
            return .actions([.answer(asked.postponement("the connection is not open yet"))])
        }
        if let refusal = refusal(of: frame, asked, by: eligibility) { return .actions([.answer(refusal)]) }
        let identity = eligibility.identity
        guard let userID = identity.userID else { return .actions([]) }
        if let withheld = eligibility.withholding(.operations, in: context) {
            let refusal = SessionAction.answer(asked.postponement("the session cannot be checked now"))
            switch withheld {
            case .awaitsVerdict, .notEligible(.sessionNotValid): return .awaitsVerdict(refusal: refusal)
            case .noLease, .awaitsFilter, .notEligible: return .actions([refusal])
            }
        }
        submitted = asked
        return .actions([
            .submit(
                OperationSubmission(
                    number: frame.number, instanceID: identity.instanceID, deviceID: identity.deviceID, userID: userID,
                    sessionID: identity.sessionID, operations: frame.operations.map(DeviceOperation.init(wire:))))
        ])
    }

    /// Records that a frame waits for a verdict.
    mutating func hold(_ frame: Mss_Device_V1_SubmitOperations) {
        submitted = Frame(number: frame.number, ids: frame.operations.map(\.operationID))
    }

    /// Why a frame cannot be sent to the relay now; nil: it can.
    private func refusal(
        of frame: Mss_Device_V1_SubmitOperations, _ asked: Frame, by eligibility: Eligibility
    ) -> Mss_Device_V1_Packet? {
        let (identity, registration) = (eligibility.identity, eligibility.registration)
        guard registration.isOpen else { return asked.postponement("the connection is not open yet") }
        guard identity.userID != nil else {
            return asked.refusal(OperationRefusalCode.signInAgain, "no user is bound")
        }
        guard frame.bindNumber == identity.bindNumber, !registration.opensBind else {
            return asked.refusal(OperationRefusalCode.otherBind, "another bind is in force, or none is yet")
        }
        guard eligibility.check.verdict != .invalid else {
            return asked.refusal(OperationRefusalCode.signInAgain, "the session is invalid")
        }
        return nil
    }

    /// Processes the relay's reply to the frame in flight; nil: no reply, and the operations may be stored or not.
    mutating func answer(_ reply: Mss_Bus_V1_SubmitReply?, number: UInt32) -> [SessionAction] {
        guard let asked = submitted, asked.number == number else { return [] }
        submitted = nil
        guard let reply else { return [.answer(asked.postponement("the service cannot store operations now"))] }
        return [
            .answer(
                .operationsTaken(
                    number, refusals: reply.refusals.map(OperationRefusal.init(bus:)),
                    retryAfterMilliseconds: reply.retryAfterMs))
        ]
    }
}
