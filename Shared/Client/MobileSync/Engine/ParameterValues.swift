import DeviceProtocol
import SyncModel

/// The values of subscription parameters from the app's session, the local store and the service. Not thread-safe.
struct ParameterValues {
    let store: LocalParameters
    let sharedState: ClientSharedState

    /// The largest size, in a frame, of the values that the device sets.
    private static let maxFrameBytes = 20_000

    /// Sets or removes a value of a user, or of the device when the user is nil.
    ///
    /// - Throws: `SyncError.invalidArgument` above the limits of the values that the device sets; `store`.
    func set(_ parameter: DeviceParameter, kind: SyncParameterKind, userID: String?) throws(SyncError) {
        if kind == .server { return try store.set(parameter, isServer: true, ofUser: userID) }
        var own = try ownValues(ofUser: userID)
        own.removeAll { $0.bizType == parameter.bizType && $0.name.isSame(as: parameter.name) }
        if parameter.value != nil { own.append(parameter) }
        let bytes = own.reduce(0) { $0 + $1.wire.value.utf8.count + 80 }
        guard own.count <= Limits.deviceParameters, bytes <= Self.maxFrameBytes else {
            throw SyncError(
                .invalidArgument,
                "at most \(Limits.deviceParameters) parameters with \(Self.maxFrameBytes) bytes in total can be set")
        }
        if kind == .session {
            sharedState.setSessionParameter(parameter, ofUser: userID)
        } else {
            try store.set(parameter, isServer: false, ofUser: userID)
        }
    }

    /// Returns every value of a user.
    func all(ofUser userID: String?) throws(SyncError) -> [SyncParameter] {
        let session = sharedState.sessionParameters(ofUser: userID).compactMap { parameter in
            parameter.value.map {
                SyncParameter(
                    bizType: parameter.bizType.text, name: parameter.name, kind: .session,
                    value: SyncParameterValue($0))
            }
        }
        let kept = try store.all(ofUser: userID).compactMap { kept in
            kept.parameter.value.map {
                SyncParameter(
                    bizType: kept.parameter.bizType.text, name: kept.parameter.name,
                    kind: kept.isServer ? .server : .client, value: SyncParameterValue($0), isPending: kept.isPending)
            }
        }
        return session + kept
    }

    /// Returns the values that the device sets. A value of the session replaces a value of the client.
    private func ownValues(ofUser userID: String?) throws(SyncError) -> [DeviceParameter] {
        var own = sharedState.sessionParameters(ofUser: userID)
        for kept in try store.all(ofUser: userID) where !kept.isServer {
            let isKnown = own.contains {
                $0.bizType == kept.parameter.bizType && $0.name.isSame(as: kept.parameter.name)
            }
            if !isKnown, kept.parameter.value != nil { own.append(kept.parameter) }
        }
        return own
    }

    /// The values for Connect, Bind and Subscriptions.
    func toSend(ofUser userID: String?) throws(SyncError) -> [Mss_Device_V1_Parameter] {
        try ownValues(ofUser: userID).map(\.wire).sorted { ($0.bizType, $0.name) < ($1.bizType, $1.name) }
    }

    /// Returns the values that the service is to store and has not confirmed.
    func pending(ofUser userID: String) throws(SyncError) -> [DeviceParameter] {
        try store.all(ofUser: userID).filter { $0.isServer && $0.isPending }.map(\.parameter)
    }

    /// Applies the service's reply to the store.
    func apply(_ answer: ClientParameters.Answer) throws(SyncError) {
        try store.answered(answer.parameters, isKept: answer.refusal == nil, ofUser: answer.userID)
        if let refusal = answer.refusal { sharedState.events.send(.parameterRefused(reason: refusal)) }
    }

    /// Stores the values that the service has for the user.
    func replaceServerValues(with parameters: Mss_Device_V1_UserParameters, ofUser userID: String) throws(SyncError) {
        try store.replaceServerValues(with: parameters.parameters, ofUser: userID)
        for bizType in parameters.refusedBizTypes {
            sharedState.events.send(
                .parameterRefused(
                    reason: "\(bizType): too many values within the retention; the last accepted value stays"))
        }
    }
}
