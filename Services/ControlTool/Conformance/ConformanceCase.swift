/// One thing that an implementation of the device protocol must do, and the script that finds out whether it does.
struct ConformanceCase<Subject: Sendable>: Sendable {
    /// Stable: what `--filter` and other people's lists of known gaps name.
    let name: String
    /// The heading of DeviceProtocol.md that holds the rule.
    let rule: String
    /// Throws `Mismatch` or `NotSupported`; anything else that it throws counts as a failure too.
    let check: @Sendable (Subject) async throws -> Void

    init(_ name: String, _ rule: String, _ check: @escaping @Sendable (Subject) async throws -> Void) {
        self.name = name
        self.rule = rule
        self.check = check
    }
}
