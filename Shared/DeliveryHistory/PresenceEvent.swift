/// What concerns the sessions of devices, in the order in which it happened at the edge of the service.
package enum PresenceEvent: Sendable, Codable {
    /// An app begins to connect as this user; its session opens later.
    case arrived(device: String, instance: String, user: String?)
    /// The client has an open session and everything that waited for it.
    case opened(device: String)
    /// The client has noticed that its connection is gone.
    case lost(device: String)
    /// The device is away, and closed its connection itself.
    case left(device: String)
    /// From now on sessions may be lost without a client's noticing: a fault of that kind begins.
    case disturbed
    /// The last such fault has healed.
    case healed
    /// A backend sends a call with this push, for the first time or again.
    ///
    /// - Parameter isShared: devices that the run does not follow may be there for the same target.
    case called(push: String, to: HistoryTarget, isShared: Bool)
    /// The call was answered.
    case answered(push: String, as: PresenceAnswer)
    /// An app was given the push.
    case given(push: String, device: String)
}

/// What an answer says of the devices that a push is for.
package enum PresenceAnswer: Sendable, Codable {
    /// The push is stored, and went towards a device.
    case sent
    /// The push was taken by a gateway for an open connection, and is stored nowhere.
    case live
    /// No device is there.
    case notOnline
    /// The answer says nothing of devices: a repeat of a push, or no answer at all.
    case unknown
}
