/// The payloads of one entity type's Sync ID, in order.
public struct EntityBatch: Sendable, Hashable {
    /// The payloads of the backend.
    public let payloads: [[UInt8]]
    /// The user that the payloads are for; nil for device data.
    public let userID: String?

    /// Makes a batch; implementations of `EntityFeed` do.
    public init(payloads: [[UInt8]], userID: String?) {
        self.payloads = payloads
        self.userID = userID
    }
}
