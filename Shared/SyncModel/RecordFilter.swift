/// Which operation records are asked for (spec C9).
package struct RecordFilter: Hashable, Sendable {
    package var instanceID: InstanceID?
    /// As a record's actor is written before it is stored: `console:alice`.
    package var actor: String?
    /// Any part of an actor, in upper or lower case; counts before `actor`, and does not travel over the bus.
    package var actorPart: String?
    /// A code, so that one can be asked for that this build does not know.
    package var actionCode: Int16?
    /// From this moment on ...
    package var from: WallTime?
    /// ... and before this one.
    package var to: WallTime?

    package init(
        instanceID: InstanceID? = nil, actor: String? = nil, actorPart: String? = nil, actionCode: Int16? = nil,
        from: WallTime? = nil, to: WallTime? = nil
    ) {
        self.instanceID = instanceID
        self.actor = actor
        self.actorPart = actorPart
        self.actionCode = actionCode
        self.from = from
        self.to = to
    }

    /// Neither end of the time is named: a list then shows the last days only, and not all of them.
    package var hasNoTime: Bool { from == nil && to == nil }
}
