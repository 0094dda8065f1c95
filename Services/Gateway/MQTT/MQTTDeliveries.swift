/// The deliveries that an MQTT client has not acknowledged, by packet id; pure.
struct MQTTDeliveries {
    /// One entry for the client.
    struct Delivery {
        let channel: MQTTChannel.Key
        let oplogID: Int64
        /// The number of the re-read that acknowledges it; 0: not a re-read.
        let reread: UInt64
        /// Milliseconds since 1970; 0: no end.
        let validUntil: Int64
    }

    /// Maximum of unacknowledged deliveries, also when the client allows more.
    private static let windowMax = 100

    private var inFlight: [UInt16: Delivery] = [:]
    private var lastPacketID: UInt16 = 0
    private var window = windowMax

    /// The number of deliveries that can be added now. The caller does not add more.
    var room: Int { window - inFlight.count }

    /// Limits the unacknowledged deliveries to the number that the client allows, and to 100.
    mutating func limit(to receiveMaximum: UInt16) { window = min(Self.windowMax, Int(receiveMaximum)) }

    /// Adds a delivery.
    ///
    /// - Returns: its packet id, from 1, which no other delivery in flight has.
    mutating func add(_ delivery: Delivery) -> UInt16 {
        repeat { lastPacketID = lastPacketID == .max ? 1 : lastPacketID + 1 } while inFlight[lastPacketID] != nil
        inFlight[lastPacketID] = delivery
        return lastPacketID
    }

    /// Removes and returns the delivery that the client acknowledged; nil: none has this packet id.
    mutating func remove(_ packetID: UInt16) -> Delivery? { inFlight.removeValue(forKey: packetID) }
}
