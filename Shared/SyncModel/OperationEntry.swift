/// What is to be recorded of something that a person did (spec C9).
package struct OperationEntry: Hashable, Sendable {
    /// Who did it, and through what: `console:alice`, `mssctl:root`.
    package var actor: String
    package var action: OperationAction
    /// Nil: of no instance, as what is done with console users.
    package var instanceID: InstanceID?
    /// What it was done to: a Sync ID, key, user, device.
    package var subject: String
    /// What there was before, as JSON; nil where nothing was, or where it does not apply. Never with a secret or a
    /// payload.
    package var before: String?
    /// What there is now, in the same way.
    package var after: String?

    package init(
        actor: String, action: OperationAction, instanceID: InstanceID?, subject: String, before: String? = nil,
        after: String? = nil
    ) {
        self.actor = actor
        self.action = action
        self.instanceID = instanceID
        self.subject = subject
        self.before = before
        self.after = after
    }

    /// Whether the actor is a person at the console or the command line: only what people do is recorded, not what
    /// backends call (spec C9).
    package static func isPerson(_ actor: String) -> Bool {
        actor.hasPrefix("console:") || actor.hasPrefix("mssctl:")
    }
}
