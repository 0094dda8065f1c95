/// One push at its place in a channel. Ids rise in the order in which the calls were answered (D2).
package struct Oplog: Hashable, Sendable {
    package var id: OplogID
    package var thirdMessageID: ThirdMessageID
    package var payload: [UInt8]
    package var isBinary: Bool
    package var targeting: Targeting
    package var validUntil: WallTime
    package var createdAt: WallTime
    /// False: the payload exists only in the notice (W11).
    package var isPersistent: Bool
    /// A tombstone: the id of a recalled oplog of the same channel (H7). A tombstone has no payload.
    package var recalls: OplogID?
    /// The attributes for filters, in the form of `SubscriptionValues.text`; empty: none.
    package var attributes: String
    /// The conversation that the backend named; empty: none.
    package var conversation: String

    package init(
        id: OplogID, thirdMessageID: ThirdMessageID, payload: [UInt8], isBinary: Bool, targeting: Targeting,
        validUntil: WallTime, createdAt: WallTime, isPersistent: Bool, recalls: OplogID? = nil,
        attributes: String = "", conversation: String = ""
    ) {
        self.id = id
        self.thirdMessageID = thirdMessageID
        self.payload = payload
        self.isBinary = isBinary
        self.targeting = targeting
        self.validUntil = validUntil
        self.createdAt = createdAt
        self.isPersistent = isPersistent
        self.recalls = recalls
        self.attributes = attributes
        self.conversation = conversation
    }

    /// The rule that skips the oplog for this device for good; nil when none does.
    package func skipReason(for device: DeviceTraits, now: WallTime) -> SkipReason? {
        if validUntil <= now { return .expired }
        return targeting.exclusion(of: device)
    }
}
