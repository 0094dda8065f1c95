import SyncModel

/// A push whose parameters are all in order; whether its instance and configuration exist is asked next.
struct PushRequest: Hashable, Sendable {
    var scope: PushScope
    var instanceID: InstanceID
    var bizType: BizType
    /// A user or device id by the configuration's kind; empty for global.
    var linkToken: String
    var thirdMessageID: ThirdMessageID
    var payload: [UInt8]
    var isBinary: Bool
    var targeting: Targeting
    /// Nil for the default validity. May lie in the past.
    var validUntil: WallTime?
}
