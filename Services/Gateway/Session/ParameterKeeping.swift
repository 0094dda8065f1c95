import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The parameter values that the device sets for its user (DeviceProtocol.md, Subscription parameters); pure.
struct ParameterKeeping {
    /// The number of the device's last frame; 0: none.
    private var lastNumber: UInt32 = 0
    /// The answer to the last frame is pending.
    private(set) var isKeeping = false

    /// Resets the state of the user: the reply to a frame of the former bind is ignored.
    mutating func forgetUser() { isKeeping = false }

    /// Processes a frame with values to keep for the user.
    ///
    /// - Parameter eligibility: nil: the Connect is not accepted yet.
    mutating func receive(
        _ frame: Mss_Device_V1_KeepParameters, by eligibility: Eligibility?, in context: SessionContext
    ) -> UserWriteOutcome {
        func violation(_ reason: String) -> UserWriteOutcome { .actions([.close(.protocolViolation, reason)]) }
        guard frame.number > lastNumber else { return violation("the number of KeepParameters must rise") }
        guard !isKeeping else { return violation("KeepParameters was sent before the answer to the last one") }
        lastNumber = frame.number
        return keep(frame, by: eligibility, in: context)
    }

    /// Sends a frame's values to the store, refuses them, or keeps the frame until the next verdict.
    mutating func keep(
        _ frame: Mss_Device_V1_KeepParameters, by eligibility: Eligibility?, in context: SessionContext
    ) -> UserWriteOutcome {
        isKeeping = false
        func refused(_ refusal: Mss_Device_V1_RequestRefusal, _ reason: String) -> UserWriteOutcome {
            .actions([.answer(.parametersKept(frame.number, refusal, reason))])
        }
        guard let eligibility, eligibility.registration.isOpen, !eligibility.registration.opensBind else {
            return refused(.tryAgain, "no bind is in force yet")
        }
        let identity = eligibility.identity
        guard frame.bindNumber == identity.bindNumber else { return refused(.tryAgain, "another bind is in force") }
        guard let userID = identity.userID else { return refused(.notEligible, "no user is bound") }
        guard eligibility.check.verdict != .invalid else { return refused(.notEligible, "the session is invalid") }
        guard (1...Limits.deviceParameters).contains(frame.parameters.count) else {
            return refused(.invalid, "a frame has 1 to \(Limits.deviceParameters) parameters")
        }
        var names: Set<String> = []
        var parameters: [DeviceParameter] = []
        for item in frame.parameters {
            let configuration = context.configuration(identity.instanceID, BizType(item.bizType))
            let rules = configuration.flatMap { try? SubscriptionRules($0.subscription) }
            let value = item.value.isEmpty ? nil : SubscriptionValue(json: item.value)
            guard let declaration = rules?.parameters[item.name] else {
                return refused(.invalid, "\(item.bizType) has no parameter \(item.name)")
            }
            guard item.value.isEmpty || value?.type == declaration.type else {
                return refused(.invalid, "\(item.bizType) \(item.name) must be a \(declaration.type.rawValue)")
            }
            guard names.insert("\(item.bizType) \(item.name)").inserted else {
                return refused(.invalid, "\(item.bizType) \(item.name) occurs twice")
            }
            parameters.append(DeviceParameter(bizType: BizType(item.bizType), name: item.name, value: value))
        }
        switch Self.withholding(Set(parameters.map(\.bizType)), by: eligibility, in: context) {
        case nil: break
        case .notEligible(.notOwner)?:
            return refused(.notEligible, "another device of the user owns its single-device data")
        case .awaitsVerdict?, .notEligible(.sessionNotValid)?:
            return .awaitsVerdict(
                refusal: .answer(.parametersKept(frame.number, .tryAgain, "the session cannot be checked now")))
        case .noLease?, .awaitsFilter?, .notEligible?:
            return refused(.tryAgain, "the session cannot be checked now")
        }
        isKeeping = true
        return .actions([.keepParameters(parameters, of: userID, number: frame.number)])
    }

    /// Records that a frame waits for a verdict.
    mutating func hold() { isKeeping = true }

    /// Why the device may not set values for its user (D16); nil: it may. The values decide which pushes of these Sync
    /// IDs all devices of the user receive.
    private static func withholding(
        _ bizTypes: Set<BizType>, by eligibility: Eligibility, in context: SessionContext
    ) -> Eligibility.Withholding? {
        if let withheld = eligibility.withholding(.parameters, in: context) { return withheld }
        for bizType in bizTypes {
            guard let kind = context.configuration(eligibility.identity.instanceID, bizType)?.kind else { continue }
            let key = ChannelKey(kind: kind, bizType: bizType)
            if let withheld = eligibility.withholding(key, channelID: nil, in: context, for: .report) {
                return withheld
            }
        }
        return nil
    }

    /// Processes the store's reply; false: the values may be stored or not.
    ///
    /// - Returns: nil: no frame with this number is pending.
    mutating func answer(_ isKept: Bool, number: UInt32) -> SessionAction? {
        guard isKeeping, lastNumber == number else { return nil }
        isKeeping = false
        guard isKept else {
            return .answer(.parametersKept(number, .tryAgain, "the service cannot store parameters now"))
        }
        return .answer(.parametersKept(number))
    }
}

extension Mss_Device_V1_Packet {
    /// The answer to a frame of parameters.
    fileprivate static func parametersKept(
        _ number: UInt32, _ refusal: Mss_Device_V1_RequestRefusal = .none, _ reason: String = ""
    ) -> Self {
        .with {
            $0.parametersKept.number = number
            $0.parametersKept.refusal = refusal
            $0.parametersKept.reason = reason
        }
    }
}
