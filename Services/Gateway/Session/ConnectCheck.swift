import Crypto
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The checks of a Connect, and of the lists that later frames replace; pure.
enum ConnectCheck {
    /// The identity that a Connect states.
    enum Result {
        case accepted(SessionIdentity)
        case refused(SessionAction)
    }

    /// Size of a device's secret, in bytes.
    private static let secretBytes = 16...64

    /// Checks the content of a Connect.
    ///
    /// - Parameter keyID: the key that signed it; nil: no signature was needed.
    static func identity(of connect: Mss_Device_V1_Connect, signedBy keyID: String?) -> Result {
        guard isIdentifier(connect.deviceID), isIdentifier(connect.storeID) else {
            return .refused(.close(.protocolViolation, "device_id and store_id take 1 to 100 characters without NUL"))
        }
        guard connect.deviceSecret.isEmpty || secretBytes.contains(connect.deviceSecret.count) else {
            return .refused(.close(.protocolViolation, "device_secret takes 16 to 64 bytes"))
        }
        guard let suspended = Self.suspended(connect.suspended) else { return .refused(.suspensionsRefused) }
        guard let parameters = Self.parameters(connect.parameters) else { return .refused(.parametersRefused) }
        guard !connect.hasBind || connect.bind.bindNumber > 0 else {
            return .refused(.close(.protocolViolation, "bind_number starts at 1"))
        }
        let pushToken = connect.hasPushToken ? PushToken(device: connect.pushToken) : nil
        guard pushToken?.isWellFormed ?? true else {
            return .refused(
                .close(.protocolViolation, "push_token has a wrong format for its provider, or more than 1,024 bytes"))
        }
        return .accepted(
            SessionIdentity(
                instanceID: InstanceID(connect.instanceID), deviceID: DeviceID(connect.deviceID),
                storeID: StoreID(connect.storeID),
                traits: DeviceTraits(
                    operatingSystem: OperatingSystem(name: connect.osName),
                    appVersion: isIdentifier(connect.appVersion) ? connect.appVersion : "",
                    slot: DeviceSlot(hashing: connect.deviceID)),
                isForeground: !connect.background, isSimple: connect.simple,
                connect: SessionIdentity.Connect(
                    connectionNumber: connect.connectionNumber,
                    secretDigest: connect.deviceSecret.isEmpty ? [] : Array(SHA256.hash(data: connect.deviceSecret)),
                    pushToken: pushToken, signedBy: keyID),
                subscriptions: SessionIdentity.Subscriptions(suspended: suspended, parameters: parameters),
                userID: nil, sessionID: "", bindNumber: 0))
    }

    /// Whether the instance still accepts the signature of a Connect. Its keys may have changed since.
    static func isSignedByLiveKey(_ identity: SessionIdentity, in context: SessionContext) -> Bool {
        guard let instance = context.instance(identity.instanceID), instance.requiresSignature else { return true }
        return instance.keys(for: .device).contains { key in
            identity.connect.signedBy.map { key.id.isSame(as: $0) } ?? false
        }
    }

    /// Whether a text can be the id of a device, a store or a user, or the version of an app.
    static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && text.utf16.count <= Limits.linkTokenUnits && !text.utf8.contains(0)
    }

    /// The Sync IDs of a device's list; nil: the list is too long. Names that no configuration can have are left out.
    static func suspended(_ list: [String]) -> Set<BizType>? {
        guard list.count <= Limits.suspendedBizTypes else { return nil }
        return Set(list.filter { $0.utf16.count <= Limits.bizTypeUnits && !$0.utf8.contains(0) }.map { BizType($0) })
    }

    /// The parameters of a device's list; nil: the list is too long, or a value is not valid.
    static func parameters(_ list: [Mss_Device_V1_Parameter]) -> [DeviceParameter]? {
        guard list.count <= Limits.deviceParameters else { return nil }
        var parameters: [DeviceParameter] = []
        for item in list {
            guard let value = SubscriptionValue(json: item.value) else { return nil }
            // Names that no configuration can have or declare are left out.
            guard item.bizType.utf16.count <= Limits.bizTypeUnits,
                item.name.utf16.count <= Limits.subscriptionNameUnits, !item.bizType.utf8.contains(0),
                !item.name.utf8.contains(0)
            else { continue }
            parameters.append(DeviceParameter(bizType: BizType(item.bizType), name: item.name, value: value))
        }
        return parameters
    }

    /// Why a bind is refused; nil: it keeps to the limits.
    static func refusal(
        of bind: Mss_Device_V1_Bind, to instanceID: InstanceID, in context: SessionContext
    ) -> String? {
        let sessionUnits = context.instance(instanceID)?.sessionUnits ?? Limits.sessionUnits
        let isAllowed =
            bind.userID.utf16.count <= Limits.linkTokenUnits && bind.sessionID.utf16.count <= sessionUnits
            && !bind.userID.utf8.contains(0)
        return isAllowed
            ? nil
            : """
            user_id takes at most \(Limits.linkTokenUnits) characters without NUL, session_id at most \
            \(sessionUnits)
            """
    }

    // MARK: Shared rates

    /// Charges a Connect to the app and its user. Call it only after the signature was checked, so that a stranger
    /// cannot use up the rate of an app or a user (SEC11).
    ///
    /// - Returns: false: the rate is used up.
    static func spend(on connect: Mss_Device_V1_Connect, in context: SessionContext) -> Bool {
        let instanceID = InstanceID(connect.instanceID)
        return context.functions.chargeConnect(instanceID, context.now)
            && spend(on: connect.bind, to: instanceID, in: context)
    }

    /// Charges a bind to its user.
    ///
    /// - Returns: false: the rate is used up.
    static func spend(
        on bind: Mss_Device_V1_Bind, to instanceID: InstanceID, in context: SessionContext
    ) -> Bool {
        // A text that is no user id binds no user and is not remembered.
        !isIdentifier(bind.userID) || context.functions.chargeBind(UserID(bind.userID), instanceID, context.now)
    }
}

extension SessionAction {
    /// Closes the session because its Connect is not signed by a live key.
    static let signatureRefused = SessionAction.close(
        .signatureRefused, "this instance accepts only a Connect that is signed with one of its device keys")
    /// Closes the session because the app or the user has used up a rate.
    static let sharedRateUsedUp = SessionAction.close(
        .overloaded, "too many connections or binds; connect again later")
    static let suspensionsRefused = SessionAction.close(
        .protocolViolation, "at most \(Limits.suspendedBizTypes) Sync IDs can be suspended")
    static let parametersRefused = SessionAction.close(
        .protocolViolation,
        "at most \(Limits.deviceParameters) parameters can be set, each to a JSON text, number, true or false")
}

extension PushToken {
    /// Fails for a provider that this build does not know. The device is then served, but not woken.
    fileprivate init?(device token: Mss_Device_V1_PushToken) {
        if token.token.isEmpty {
            self.init(provider: .apns, text: "")
        } else if let provider = Provider(rawValue: Int16(truncatingIfNeeded: token.provider.rawValue)) {
            self.init(provider: provider, text: token.token)
        } else {
            return nil
        }
    }
}
