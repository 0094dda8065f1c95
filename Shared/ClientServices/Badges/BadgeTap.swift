/// A tap that is reported up: the server need not show this badge to the user's other devices any more.
public struct BadgeTap: Hashable, Sendable, Codable {
    /// 32 lower-case hex digits, the same each time the tap is reported; in the order of taps.
    public let id: String
    /// Who tapped; nil: nobody was signed in.
    public let userID: String?
    /// The badge's path.
    public let path: BadgePath
    /// The badge's business.
    public let business: String
    /// The badge's stamp: a newer one is not cleared by this tap.
    public let stamp: Int64?
    /// When it was tapped, in milliseconds since 1970, by the device's clock.
    public let at: Int64
}
