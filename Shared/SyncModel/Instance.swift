/// One app in one environment and the settings that hold for all its configurations (spec §1, C13).
package struct Instance: Hashable, Sendable {
    package var id: InstanceID
    package var name: String
    package var isEnabled: Bool
    /// Where the tenant answers `com.antcloud.session.validate`; empty: no check can succeed (spec V2).
    package var validatorURL: String
    /// In which form it is asked.
    package var validatorForm: ValidatorForm
    /// How long a valid verdict stands (spec V5).
    package var verdictLifetime: Duration
    /// How long an oplog is kept at the most, 1 to 30 days (spec D11).
    package var retention: Duration
    /// Backend calls and device connects must be signed (spec H9, C8).
    package var requiresSignature: Bool
    /// A device id belongs to the secret that it was first registered with (reliability SEC9).
    package var bindsDevices: Bool
    /// Every bind takes the user's single-device data over, a background reconnect too; otherwise only a bind that the
    /// app asked for (spec D8).
    package var latestConnectionOwns: Bool
    /// UTF-16 units of a session id at the most (spec V1).
    package var sessionUnits: Int
    /// What calls without a key may do.
    package var limits: KeyLimits
    /// Live keys, at most two of a purpose; those of a snapshot, not changed by storing the instance.
    package var keys: [AppKey]
    /// Where the tenant takes operations of devices (spec, two-way §2); empty: they are refused.
    package var relayURL: String
    /// Rises with every change; 0 for one that is not stored yet.
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

    /// Its live keys of a purpose.
    package func keys(for purpose: AppKey.Purpose) -> [AppKey] { keys.filter { $0.purpose == purpose } }

    /// What is wrong with it, for whoever wants to store it; nil when it can be.
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
