/// One app in one environment and the settings that hold for all its configurations (spec §1, C13).
package struct Instance: Hashable, Sendable {
    package var id: InstanceID
    package var name: String
    package var isEnabled: Bool
    /// Where the tenant answers `com.antcloud.session.validate`; empty: no check can succeed (spec V2).
    package var validatorURL: String
    /// How long a valid verdict stands (spec V5).
    package var verdictLifetime: Duration

    package init(id: InstanceID, name: String, isEnabled: Bool, validatorURL: String, verdictLifetime: Duration) {
        self.id = id
        self.name = name
        self.isEnabled = isEnabled
        self.validatorURL = validatorURL
        self.verdictLifetime = verdictLifetime
    }
}
