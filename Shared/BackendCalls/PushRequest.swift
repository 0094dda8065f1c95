package import SyncModel

/// A push whose parameters are all in order; whether its instance and configuration exist is asked next.
package struct PushRequest: Hashable, Sendable {
    package var scope: PushScope
    package var instanceID: InstanceID
    package var bizType: BizType
    /// A user or device id by the configuration's kind; empty for global.
    package var linkToken: String
    package var thirdMessageID: ThirdMessageID
    package var payload: [UInt8]
    package var isBinary: Bool
    package var targeting: Targeting
    /// Nil for the default validity. May lie in the past.
    package var validUntil: WallTime?
    /// What filters look at; whether the configuration declares it is asked next.
    package var attributes: SubscriptionValues

    /// A push of the service's own making, whose parameters its maker answers for.
    package init(
        scope: PushScope, instanceID: InstanceID, bizType: BizType, linkToken: String, thirdMessageID: ThirdMessageID,
        payload: [UInt8], isBinary: Bool, targeting: Targeting, validUntil: WallTime? = nil,
        attributes: SubscriptionValues = SubscriptionValues()
    ) {
        self.scope = scope
        self.instanceID = instanceID
        self.bizType = bizType
        self.linkToken = linkToken
        self.thirdMessageID = thirdMessageID
        self.payload = payload
        self.isBinary = isBinary
        self.targeting = targeting
        self.validUntil = validUntil
        self.attributes = attributes
    }
}
