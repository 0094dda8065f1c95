/// Whom the oplogs of a channel are for: dimension and push scope in one closed set (spec §1).
package enum ChannelKind: Int16, Sendable, CaseIterable {
    /// Designated push to one user.
    case user = 0
    /// Designated push to one device.
    case device = 1
    /// Global push, received by every bound user.
    case globalUser = 2
    /// Global push, received by every device, bound or not.
    case globalDevice = 3

    /// Whether one stored oplog serves everybody (spec D15).
    package var isGlobal: Bool { self == .globalUser || self == .globalDevice }
    /// Whether a device receives it only while a user is bound.
    package var needsUser: Bool { self == .user || self == .globalUser }

    /// The same target with the push scope "global".
    package var ofEverybody: ChannelKind { needsUser ? .globalUser : .globalDevice }

    /// The same target with the push scope "appointed".
    package var ofOne: ChannelKind { needsUser ? .user : .device }

    /// Whether both are for users, or both for devices: a configuration may change from one to the other (spec C4).
    package func hasSameTarget(as other: ChannelKind) -> Bool { needsUser == other.needsUser }
}
