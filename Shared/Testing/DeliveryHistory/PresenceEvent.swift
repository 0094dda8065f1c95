/// An event that concerns the sessions of devices. The order of events is the order at the edge of the service.
package enum PresenceEvent: Sendable, Codable {
    /// An app begins to connect as this user. Its session opens later.
    case arrived(device: String, instance: String, user: String?)
    /// The client has an open session and has received its backlog.
    case opened(device: String)
    /// The client noticed the end of its connection.
    case lost(device: String)
    /// The device closed its connection itself.
    case left(device: String)
    /// A fault begins that can end sessions without the client's notice.
    case disturbed
    /// The last such fault has healed.
    case healed
    /// A backend sends a call with this push, for the first time or again.
    ///
    /// - Parameter isShared: whether the target can have further devices that the run does not follow.
    case called(push: String, to: HistoryTarget, isShared: Bool)
    /// The call was answered.
    case answered(push: String, as: PresenceAnswer)
    /// An app received the push.
    case given(push: String, device: String)
}

/// The statement of a response about the devices of the target.
package enum PresenceAnswer: Sendable, Codable {
    /// The push is stored, and was sent towards a device.
    case sent
    /// A gateway accepted the non-persistent push for an open connection.
    case live
    /// No device of the target is connected.
    case notOnline
    /// The response says nothing about devices: it answers a repeat, or no response came.
    case unknown
}
