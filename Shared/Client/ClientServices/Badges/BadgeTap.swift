/// A tap on a badge, as reported to the server. The server can then remove the badge on the user's other devices.
public struct BadgeTap: Hashable, Sendable, Codable {
    /// 32 lower-case hex digits. Each report of the same tap has the same id. Ids sort in the order of the taps.
    public let id: String
    /// The user who tapped; nil when no user was signed in.
    public let userID: String?
    /// The badge's path.
    public let path: BadgePath
    /// The badge's business.
    public let business: String
    /// The badge's stamp. The tap does not clear a badge with a higher stamp.
    public let stamp: Int64?
    /// The time of the tap in milliseconds since 1970, by the device's clock.
    public let at: Int64
}
