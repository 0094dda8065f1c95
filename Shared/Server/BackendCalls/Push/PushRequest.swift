package import SyncModel

/// A push with valid parameters. Its instance and configuration are not checked yet.
package struct PushRequest: Hashable, Sendable {
    package var scope: PushScope
    package var instanceID: InstanceID
    package var bizType: BizType
    /// A user id or a device id, by the configuration's kind; empty for a global push.
    package var linkToken: String
    package var thirdMessageID: ThirdMessageID
    package var payload: [UInt8]
    package var isBinary: Bool
    package var targeting: Targeting
    /// The requested end; nil for the default validity. May be in the past.
    package var validUntil: WallTime?
    /// The attributes for filters. They are not compared with the configuration yet.
    package var attributes: SubscriptionValues
    /// The conversation; empty: none.
    package var conversation: String

    /// Creates a push inside the service; the parameters are not checked.
    package init(
        scope: PushScope, instanceID: InstanceID, bizType: BizType, linkToken: String, thirdMessageID: ThirdMessageID,
        payload: [UInt8], isBinary: Bool, targeting: Targeting, validUntil: WallTime? = nil,
        attributes: SubscriptionValues = SubscriptionValues(), conversation: String = ""
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
        self.conversation = conversation
    }
}

/// The API call that made a push.
package enum PushScope: Hashable, Sendable {
    /// `/webapi/sync/single`: to the user or device that linkToken names.
    case single
    /// `/webapi/sync/global`: to all users or devices; linkToken is ignored.
    case global
}

/// The refusal of a backend's call, which had no effect. A repeat of the same call is refused again, except after
/// UNAVAILABLE.
package struct PushRefusal: Error, Hashable, Sendable {
    package let code: ResultCode
    /// A sentence for the caller with the parameter, its limit and the correction.
    package let detail: String

    /// Refuses with a code and a sentence.
    package init(_ code: ResultCode, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The response to the caller.
    package var answer: APIAnswer { code == .unavailable ? .unavailable(detail) : .result(code, detail: detail) }
}
