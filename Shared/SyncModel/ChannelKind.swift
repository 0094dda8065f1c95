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
}
