import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// What the bound user did on the device, on its way to the relay (DeviceProtocol.md, Operations).
extension SessionStateMachine {
    /// The device sends operations.
    mutating func received(
        _ frame: Mss_Device_V1_SubmitOperations, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard frame.number > operations.lastNumber else {
            return close(.protocolViolation, "the number of SubmitOperations must rise")
        }
        guard (1...Limits.frameOperations).contains(frame.operations.count) else {
            return close(.protocolViolation, "a frame has 1 to \(Limits.frameOperations) operations")
        }
        guard operations.submitted == nil else {
            return close(.protocolViolation, "operations came before the answer to those before them")
        }
        operations.lastNumber = frame.number
        return submit(frame, in: world)
    }

    /// Hands a frame to the relay, refuses it, or keeps it until the tenant has answered.
    mutating func submit(
        _ frame: Mss_Device_V1_SubmitOperations, in world: SessionSurroundings
    ) -> [SessionAction] {
        let asked = SessionOperations.Frame(number: frame.number, ids: frame.operations.map(\.operationID))
        operations.submitted = nil
        if let refusal = refusal(of: frame, asked) { return [.answer(refusal)] }
        guard let identity, let userID = identity.userID else { return [] }
        if let withheld = withholding(.operations, of: identity, in: world) {
            switch withheld {
            case .awaitsWord, .notEligible(.sessionNotValid):
                if let actions = hold(.with { $0.submitOperations = frame }, in: world) {
                    operations.submitted = asked
                    return actions
                }
            case .noLease, .awaitsFilter, .notEligible: break
            }
            return [
                .answer(
                    asked.refusal(
                        OperationRefusalCode.unavailable, "the session cannot be checked now",
                        retryAfterMilliseconds: SessionOperations.pauseMilliseconds))
            ]
        }
        operations.submitted = asked
        return [
            .submit(
                OperationSubmission(
                    number: frame.number, instanceID: identity.instanceID, deviceID: identity.deviceID, userID: userID,
                    sessionID: identity.sessionID, operations: frame.operations.map(DeviceOperation.init(wire:))))
        ]
    }

    /// Why nothing of a frame goes to the relay now; nil: it may.
    private func refusal(
        of frame: Mss_Device_V1_SubmitOperations, _ asked: SessionOperations.Frame
    ) -> Mss_Device_V1_Packet? {
        guard phase == .open, let identity else {
            return asked.refusal(
                OperationRefusalCode.unavailable, "the connection is not open yet",
                retryAfterMilliseconds: SessionOperations.pauseMilliseconds)
        }
        guard identity.userID != nil else {
            return asked.refusal(OperationRefusalCode.signInAgain, "no user is bound")
        }
        guard frame.bindNumber == identity.bindNumber, !opensBind else {
            return asked.refusal(OperationRefusalCode.otherBind, "another bind is in force, or none is yet")
        }
        guard check.word != .invalid else {
            return asked.refusal(OperationRefusalCode.signInAgain, "the tenant calls the session invalid")
        }
        return nil
    }

    /// The relay has answered; nil: it did not, and may have taken them or not.
    mutating func answeredOperations(_ reply: Mss_Bus_V1_SubmitReply?, number: UInt32) -> [SessionAction] {
        guard phase == .open, let asked = operations.submitted, asked.number == number else { return [] }
        // A frame that waits for the tenant is not with the relay.
        if heldRequests.contains(where: \.hasOperations) { return [] }
        operations.submitted = nil
        guard let reply else {
            return [
                .answer(
                    asked.refusal(
                        OperationRefusalCode.unavailable, "the service cannot take operations now",
                        retryAfterMilliseconds: SessionOperations.pauseMilliseconds))
            ]
        }
        return [
            .answer(
                .operationsTaken(
                    number, refusals: reply.refusals.map(OperationRefusal.init(bus:)),
                    retryAfterMilliseconds: reply.retryAfterMs))
        ]
    }
}
