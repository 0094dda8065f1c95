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

    package init(
        id: InstanceID, name: String, isEnabled: Bool, validatorURL: String, verdictLifetime: Duration,
        retention: Duration = Limits.retention, validatorForm: ValidatorForm = .http
    ) {
        self.id = id
        self.name = name
        self.isEnabled = isEnabled
        self.validatorURL = validatorURL
        self.validatorForm = validatorForm
        self.verdictLifetime = verdictLifetime
        self.retention = retention
    }

    /// What is wrong with it, for whoever wants to store it; nil when it can be.
    package var fault: String? {
        guard !id.text.isEmpty, id.text.utf16.count <= Limits.linkTokenUnits, !id.text.utf8.contains(0) else {
            return "an instance id has 1 to \(Limits.linkTokenUnits) characters, without NUL"
        }
        guard (.seconds(86_400)...Limits.retention).contains(retention) else {
            return "retention is 1 to \(Limits.retention.components.seconds / 86_400) days"
        }
        guard verdictLifetime >= .zero else { return "the lifetime of a verdict is 0 s or more" }
        return validatorForm.fault
    }
}
