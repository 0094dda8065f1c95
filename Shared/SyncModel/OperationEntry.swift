/// What is to be recorded of something that a person did (spec C9).
package struct OperationEntry: Hashable, Sendable {
    package var actor: OperationActor
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
        actor: OperationActor, action: OperationAction, instanceID: InstanceID?, subject: String, before: String? = nil,
        after: String? = nil
    ) {
        self.actor = actor
        self.action = action
        self.instanceID = instanceID
        self.subject = subject
        self.before = before
        self.after = after
    }
}
