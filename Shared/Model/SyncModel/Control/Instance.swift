/// One app in one environment, with the settings for all its configurations (W1, C13).
package struct Instance: Hashable, Sendable {
    package var id: InstanceID
    package var name: String
    package var isEnabled: Bool
    /// The tenant's endpoint of `com.antcloud.session.validate`; empty: no session check can succeed (V2).
    package var validatorURL: String
    /// The form of validation requests.
    package var validatorForm: ValidatorForm
    /// The longest age of a valid verdict (V5).
    package var verdictLifetime: Duration
    /// The longest time for which an oplog is kept, 1 to 30 days (D11).
    package var retention: Duration
    /// Backend calls and device connects must be signed (H9, C8).
    package var requiresSignature: Bool
    /// A device id is bound to the secret of its first registration (SEC9).
    package var bindsDevices: Bool
    /// Every bind makes its device the owner of single-device data, also after a background reconnect. Otherwise only a
    /// bind that the app requested does (D8).
    package var latestConnectionOwns: Bool
    /// Maximum UTF-16 units of a session id (V1).
    package var sessionUnits: Int
    /// The limits of calls without a key.
    package var limits: KeyLimits
    /// Live keys, at most two of each purpose. They come from a snapshot; storing the instance does not change them.
    package var keys: [AppKey]
    /// The tenant's endpoint for device operations (ENT10); empty: they are refused.
    package var relayURL: String
    /// Rises with every change; 0 before the instance is stored.
    package var revision: Int

    package init(
        id: InstanceID, name: String, isEnabled: Bool, validatorURL: String, verdictLifetime: Duration,
        retention: Duration = Limits.retention, validatorForm: ValidatorForm = .http, requiresSignature: Bool = false,
        bindsDevices: Bool = false, latestConnectionOwns: Bool = false, sessionUnits: Int = Limits.sessionUnits,
        limits: KeyLimits = KeyLimits(), keys: [AppKey] = [], relayURL: String = "", revision: Int = 0
    ) {
        self.id = id
        self.name = name
        self.isEnabled = isEnabled
        self.validatorURL = validatorURL
        self.validatorForm = validatorForm
        self.verdictLifetime = verdictLifetime
        self.retention = retention
        self.requiresSignature = requiresSignature
        self.bindsDevices = bindsDevices
        self.latestConnectionOwns = latestConnectionOwns
        self.sessionUnits = sessionUnits
        self.limits = limits
        self.keys = keys
        self.relayURL = relayURL
        self.revision = revision
    }

    /// The live keys of a purpose.
    package func keys(for purpose: AppKey.Purpose) -> [AppKey] { keys.filter { $0.purpose == purpose } }

    /// The fault that prevents storing the instance, as a sentence; nil for a valid one.
    package var fault: String? {
        guard !id.text.isEmpty, id.text.utf16.count <= Limits.linkTokenUnits, !id.text.utf8.contains(0) else {
            return "an instance id has 1 to \(Limits.linkTokenUnits) characters, without NUL"
        }
        guard (.seconds(86_400)...Limits.retention).contains(retention) else {
            return "retention is 1 to \(Limits.retention.components.seconds / 86_400) days"
        }
        guard (.zero...Limits.longestVerdictLifetime).contains(verdictLifetime) else {
            return "the lifetime of a verdict is 0 s to 30 days"
        }
        guard (Limits.sessionUnits...Limits.longestSessionUnits).contains(sessionUnits) else {
            return "a session id may have \(Limits.sessionUnits) to \(Limits.longestSessionUnits) characters"
        }
        return limits.fault ?? validatorForm.fault
    }
}

/// Whether changes for a user as a whole need a valid verdict (D16).
package struct InstanceChecks: Hashable, Sendable {
    /// Whether the instance has a validator and a configuration for users with the session check.
    package var ofUsers: Bool
    /// The same for a single-device configuration: only a device with a valid verdict becomes the owner (D8).
    package var ofOwners: Bool

    package init(ofUsers: Bool = false, ofOwners: Bool = false) {
        self.ofUsers = ofUsers
        self.ofOwners = ofOwners
    }

    /// Reads an instance and its configurations, online or not.
    package init(_ instance: Instance, _ configurations: some Sequence<SyncConfiguration>) {
        self.init()
        guard !instance.validatorURL.isEmpty else { return }
        for configuration in configurations where configuration.checksSession {
            ofUsers = true
            if configuration.isSingleDevice { ofOwners = true }
        }
    }
}

/// The form of validation requests to an instance's tenant (V2).
package enum ValidatorForm: Hashable, Sendable {
    /// The three members as JSON, posted to the tenant's URL.
    case http
    /// Through an mPaaS mobile gateway, whose URL ends in `/mgw.htm`.
    case mobileGateway(MobileGateway)

    /// The app data that a mobile gateway requires beside the request.
    package struct MobileGateway: Hashable, Sendable {
        package var appID: String
        package var workspaceID: String
        /// Whether the request is sent as `_requestBody`, for gateways whose operation has one body.
        package var wrapsBody: Bool

        package init(appID: String, workspaceID: String, wrapsBody: Bool = false) {
            self.appID = appID
            self.workspaceID = workspaceID
            self.wrapsBody = wrapsBody
        }
    }

    /// The fault that prevents storing it, as a sentence; nil for a valid form.
    var fault: String? {
        guard case .mobileGateway(let gateway) = self else { return nil }
        for (name, value) in [("app id", gateway.appID), ("workspace id", gateway.workspaceID)] {
            guard (1...Limits.linkTokenUnits).contains(value.utf16.count),
                value.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
            else { return "a mobile gateway's \(name) has 1 to \(Limits.linkTokenUnits) visible ASCII characters" }
        }
        return nil
    }
}
