/// Payloads of one entity type's Sync ID, in their order.
public struct EntityBatch: Sendable, Hashable {
    /// As the backend sent them.
    public let payloads: [[UInt8]]
    /// The user they are for; nil for device data.
    public let userID: String?

    /// A batch; adapters of feeds make them.
    public init(payloads: [[UInt8]], userID: String?) {
        self.payloads = payloads
        self.userID = userID
    }
}
