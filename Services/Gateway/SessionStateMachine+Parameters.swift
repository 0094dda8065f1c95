import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Subscription parameters: what the device sets, and what its user keeps (DeviceProtocol.md, Subscription parameters).
extension SessionStateMachine {
    /// The parameters of a device's list; nil when it is too long, or one cannot be.
    static func parameters(_ list: [Mss_Device_V1_Parameter]) -> [DeviceParameter]? {
        guard list.count <= Limits.deviceParameters else { return nil }
        var parameters: [DeviceParameter] = []
        for item in list {
            guard let value = SubscriptionValue(json: item.value) else { return nil }
            // What no configuration can be called, or declare, is left out.
            guard item.bizType.utf16.count <= Limits.bizTypeUnits,
                item.name.utf16.count <= Limits.subscriptionNameUnits, !item.bizType.utf8.contains(0),
                !item.name.utf8.contains(0)
            else { continue }
            parameters.append(DeviceParameter(bizType: BizType(item.bizType), name: item.name, value: value))
        }
        return parameters
    }

    mutating func closeForParameters() -> [SessionAction] {
        close(
            .protocolViolation,
            "at most \(Limits.deviceParameters) parameters can be set, each to a JSON text, number, true or false")
    }

    /// The device has values kept for its user.
    mutating func received(
        _ frame: Mss_Device_V1_KeepParameters, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard frame.number > filters.lastKeeping else {
            return close(.protocolViolation, "the number of KeepParameters must rise")
        }
        guard !filters.isKeeping else {
            return close(.protocolViolation, "parameters came before the answer to those before them")
        }
        filters.lastKeeping = frame.number
        return keep(frame, in: world)
    }

    /// Has a frame's values kept, refuses it, or keeps the frame until the tenant has answered.
    mutating func keep(_ frame: Mss_Device_V1_KeepParameters, in world: SessionSurroundings) -> [SessionAction] {
        filters.isKeeping = false
        func refused(_ refusal: Mss_Device_V1_RequestRefusal, _ reason: String) -> [SessionAction] {
            [.answer(.parametersKept(frame.number, refusal, reason))]
        }
        func later() -> [SessionAction] { refused(.tryAgain, "the session cannot be checked now") }
        guard phase == .open, let identity, !opensBind else { return refused(.tryAgain, "no bind is in force yet") }
        guard frame.bindNumber == identity.bindNumber else { return refused(.tryAgain, "another bind is in force") }
        guard let userID = identity.userID else { return refused(.notEligible, "no user is bound") }
        guard check.word != .invalid else { return refused(.notEligible, "the tenant calls the session invalid") }
        guard (1...Limits.deviceParameters).contains(frame.parameters.count) else {
            return refused(.invalid, "a frame has 1 to \(Limits.deviceParameters) parameters")
        }
        var names: Set<String> = []
        var parameters: [DeviceParameter] = []
        for item in frame.parameters {
            let configuration = world.configuration(identity.instanceID, BizType(item.bizType))
            let rules = configuration.flatMap { try? SubscriptionRules($0.subscription) }
            let value = item.value.isEmpty ? nil : SubscriptionValue(json: item.value)
            guard let declaration = rules?.parameters[item.name] else {
                return refused(.invalid, "\(item.bizType) has no parameter \(item.name)")
            }
            guard item.value.isEmpty || value?.type == declaration.type else {
                return refused(.invalid, "\(item.bizType) \(item.name) takes a \(declaration.type.rawValue)")
            }
            guard names.insert("\(item.bizType) \(item.name)").inserted else {
                return refused(.invalid, "\(item.bizType) \(item.name) stands twice")
            }
            parameters.append(DeviceParameter(bizType: BizType(item.bizType), name: item.name, value: value))
        }
        switch withholdingOfParameters(Set(parameters.map(\.bizType)), of: identity, in: world) {
        case nil: break
        case .notEligible(.notOwner)?:
            return refused(.notEligible, "another device of the user owns its single-device data")
        case .awaitsWord?, .notEligible(.sessionNotValid)?:
            guard let actions = hold(.with { $0.keepParameters = frame }, in: world) else { return later() }
            filters.isKeeping = true
            return actions
        case .noLease?, .awaitsFilter?, .notEligible?:
            return later()
        }
        filters.isKeeping = true
        return [.keepParameters(parameters, of: userID, number: frame.number)]
    }

    /// What stands between the device and values for its user (spec D16): they decide about what is pushed of these
    /// business types, to all of the user's devices. Nil: nothing.
    private func withholdingOfParameters(
        _ bizTypes: Set<BizType>, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Withholding? {
        if let withheld = withholding(.parameters, of: identity, in: world) { return withheld }
        for bizType in bizTypes {
            guard let kind = world.configuration(identity.instanceID, bizType)?.kind else { continue }
            let key = ChannelKey(kind: kind, bizType: bizType)
            if let withheld = withholding(key, of: identity, in: world, for: .report) { return withheld }
        }
        return nil
    }

    /// The store has answered; false: it may have kept them or not.
    mutating func parametersKept(_ isKept: Bool, number: UInt32, in world: SessionSurroundings) -> [SessionAction] {
        guard phase == .open, filters.isKeeping, filters.lastKeeping == number else { return [] }
        filters.isKeeping = false
        guard isKept else {
            return [.answer(.parametersKept(number, .tryAgain, "the service cannot keep parameters now"))]
        }
        return [.answer(.parametersKept(number))] + announce(in: world)
    }

    /// What the device is to know of its user's values, behind a registration.
    mutating func tellParameters(
        _ reply: Mss_Bus_V1_SessionReply, to identity: SessionIdentity
    ) -> [SessionAction] {
        guard identity.userID != nil, let (parameters, refused) = filters.news(in: reply) else { return [] }
        return [
            .send(
                .with {
                    $0.userParameters.bindNumber = identity.bindNumber
                    $0.userParameters.parameters = parameters.map { parameter in
                        .with {
                            $0.bizType = parameter.bizType
                            $0.name = parameter.name
                            $0.value = parameter.value
                        }
                    }
                    $0.userParameters.refusedBizTypes = refused
                })
        ]
    }

    /// The rules that filters go by are not those that the last registration asked by: it asks again.
    mutating func registerForFilters(in world: SessionSurroundings) -> [SessionAction] {
        guard phase == .open, let identity, world.filtered(identity.instanceID).digest != filters.digest else {
            return []
        }
        return announce(in: world)
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
