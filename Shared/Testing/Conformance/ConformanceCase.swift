/// One requirement for an implementation of the device protocol, with the script that checks it.
struct ConformanceCase<Subject: Sendable>: Sendable {
    /// Stable name for `--filter` and for lists of known gaps.
    let name: String
    /// The heading of DeviceProtocol.md that contains the rule.
    let rule: String
    /// Throws `Mismatch` for a failure and `NotSupported` for a missing feature. Any other error counts as a failure.
    let check: @Sendable (Subject) async throws -> Void

    init(_ name: String, _ rule: String, _ check: @escaping @Sendable (Subject) async throws -> Void) {
        self.name = name
        self.rule = rule
        self.check = check
    }
}
