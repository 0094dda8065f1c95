import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// Subscription parameters, between the app, the store and the connection.
extension ClientEngine {
    /// Bytes of the values that the device itself sets, as they stand in a frame.
    private static let frameRoom = 20_000

    /// Sets a value, and tells the gateway when there is a connection.
    func setParameter(
        _ parameter: DeviceParameter, kind: SyncParameterKind, userID: String?
    ) throws(SyncError) {
        if kind == .server {
            try store.setParameter(parameter, isServer: true, ofUser: userID)
            return perform(machine.hasParameters(now: .now))
        }
        var own = try ownParameters(ofUser: userID)
        own.removeAll { $0.bizType == parameter.bizType && $0.name.isSame(as: parameter.name) }
        if parameter.value != nil { own.append(parameter) }
        let bytes = own.reduce(0) { $0 + $1.wire.value.utf8.count + 80 }
        guard own.count <= Limits.deviceParameters, bytes <= Self.frameRoom else {
            throw SyncError(
                .invalidArgument,
                "\(Limits.deviceParameters) parameters, of \(Self.frameRoom) bytes in all, can be set at once")
        }
        if kind == .session {
            board.setSessionParameter(parameter, ofUser: userID)
        } else {
            try store.setParameter(parameter, isServer: false, ofUser: userID)
        }
        subscriptionsChanged()
    }

    /// Every value of a user.
    func parameters(ofUser userID: String?) throws(SyncError) -> [SyncParameter] {
        let session = board.sessionParameters(ofUser: userID).compactMap { parameter in
            parameter.value.map {
                SyncParameter(
                    bizType: parameter.bizType.text, name: parameter.name, kind: .session,
                    value: SyncParameterValue($0))
            }
        }
        let kept = try store.parameters(ofUser: userID).compactMap { kept in
            kept.parameter.value.map {
                SyncParameter(
                    bizType: kept.parameter.bizType.text, name: kept.parameter.name,
                    kind: kept.isServer ? .server : .client, value: SyncParameterValue($0), isPending: kept.isPending)
            }
        }
        return session + kept
    }

    /// What the device itself sets: of the session before those of the client.
    private func ownParameters(ofUser userID: String?) throws(SyncError) -> [DeviceParameter] {
        var own = board.sessionParameters(ofUser: userID)
        for kept in try store.parameters(ofUser: userID) where !kept.isServer {
            let isKnown = own.contains {
                $0.bizType == kept.parameter.bizType && $0.name.isSame(as: kept.parameter.name)
            }
            if !isKnown, kept.parameter.value != nil { own.append(kept.parameter) }
        }
        return own
    }

    /// What goes into Connect, Bind and Subscriptions.
    func toldParameters(ofUser userID: String?) throws(SyncError) -> [Mss_Device_V1_Parameter] {
        try ownParameters(ofUser: userID).map(\.wire).sorted { ($0.bizType, $0.name) < ($1.bizType, $1.name) }
    }

    /// Sends what the service is to keep and has not answered.
    func collectParameters(ofUser userID: String) throws(SyncError) {
        let pending = try store.parameters(ofUser: userID).filter { $0.isServer && $0.isPending }
        perform(machine.collected(parameters: pending.map(\.parameter), ofUser: userID, now: .now))
    }

    /// Notes what the service has answered.
    func note(_ answer: ClientParameters.Answer) throws(SyncError) {
        try store.answered(answer.parameters, isKept: answer.refusal == nil, ofUser: answer.userID)
        if let refusal = answer.refusal { board.events.send(.parameterRefused(reason: refusal)) }
    }

    /// Notes what the service keeps for the user.
    func learn(_ parameters: Mss_Device_V1_UserParameters, ofUser userID: String) throws(SyncError) {
        try store.learnServerParameters(parameters.parameters, ofUser: userID)
        for bizType in parameters.refusedBizTypes {
            board.events.send(
                .parameterRefused(reason: "\(bizType) had too many values within what is kept; the last one stays"))
        }
    }
}
