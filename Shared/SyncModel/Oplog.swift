/// One stored piece of data. Within its channel ids rise in the order in which calls were answered (spec D2).
package struct Oplog: Hashable, Sendable {
    package var id: OplogID
    package var thirdMessageID: ThirdMessageID
    package var payload: [UInt8]
    package var isBinary: Bool
    package var targeting: Targeting
    package var validUntil: WallTime
    package var createdAt: WallTime
    /// False: its payload exists only in the notice that carries it (spec §1, non-persistent).
    package var isPersistent: Bool
    /// A tombstone: the backend has recalled this oplog of the same channel (spec H7); there is no payload.
    package var recalls: OplogID?
    /// What filters look at, as `SubscriptionValues.text` has it; empty: nothing.
    package var attributes: String

    package init(
        id: OplogID, thirdMessageID: ThirdMessageID, payload: [UInt8], isBinary: Bool, targeting: Targeting,
        validUntil: WallTime, createdAt: WallTime, isPersistent: Bool, recalls: OplogID? = nil,
        attributes: String = ""
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
    }

    /// Nil when this device gets the oplog now, otherwise the rule that passes it over for good.
    package func skipReason(for device: DeviceTraits, now: WallTime) -> SkipReason? {
        if validUntil <= now { return .expired }
        return targeting.exclusion(of: device)
    }
}
