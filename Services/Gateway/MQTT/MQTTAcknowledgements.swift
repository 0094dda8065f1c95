import DeviceProtocol
import SwiftProtobuf

/// Collects the acknowledgements of an MQTT client into those of the device protocol: positions of channels, and
/// re-reads; pure.
struct MQTTAcknowledgements {
    private var channels: [MQTTChannel.Key: MQTTChannel] = [:]
    /// By the number of each re-read: its incomplete deliveries, plus one until it ends. 0: the re-read is complete.
    private var rereads: [UInt64: Int] = [:]
    /// The re-reads to acknowledge next.
    private var finishedRereads: [UInt64] = []

    /// Whether an entry of a batch was not delivered on this connection yet.
    func isNew(_ oplogID: Int64, in channel: MQTTChannel.Key) -> Bool { oplogID > channels[channel]?.highestID ?? 0 }

    /// Adds a delivery to its re-read or to its channel. It is incomplete until `finish`.
    mutating func add(_ delivery: MQTTDeliveries.Delivery) {
        if delivery.reread != 0 {
            rereads[delivery.reread, default: 0] += 1
        } else {
            channels[delivery.channel, default: MQTTChannel()].add(delivery.oplogID)
        }
    }

    /// Adds the end of a batch, which needs no acknowledgement.
    mutating func addEnd(_ position: Int64, of channel: MQTTChannel.Key) {
        channels[channel, default: MQTTChannel()].addEnd(position)
    }

    /// Begins a re-read. It is incomplete until `end(reread:)` and until all its deliveries are complete.
    ///
    /// - Returns: whether it is new. A complete re-read that the gateway repeats is acknowledged again.
    mutating func begin(reread: UInt64) -> Bool {
        if let open = rereads[reread] {
            // The acknowledgement of the re-read was lost.
            if open == 0 { finishedRereads.append(reread) }
            return false
        }
        rereads[reread] = 1
        return true
    }

    /// Ends a re-read: no delivery is added to it any more.
    mutating func end(reread: UInt64) { completeOne(of: reread) }

    /// Records that a delivery is complete: the client acknowledged it, or does not need to.
    mutating func finish(_ delivery: MQTTDeliveries.Delivery) {
        if delivery.reread != 0 {
            completeOne(of: delivery.reread)
        } else {
            channels[delivery.channel]?.acknowledge(delivery.oplogID)
        }
    }

    /// Returns and removes the acknowledgements of channels and re-reads that became complete; nil: there are none.
    mutating func dequeue() -> Mss_Device_V1_StoredAck? {
        var acknowledgement = Mss_Device_V1_StoredAck()
        for key in channels.keys.sorted(by: { ($0.bizType, $0.kind.rawValue) < ($1.bizType, $1.kind.rawValue) }) {
            guard let upto = channels[key]?.dequeueAcknowledged() else { continue }
            acknowledgement.channels.append(
                .with {
                    $0.kind = key.kind
                    $0.bizType = key.bizType
                    $0.bindNumber = key.bindNumber
                    $0.upto = upto
                })
        }
        acknowledgement.rereads = finishedRereads
        finishedRereads = []
        return acknowledgement.channels.isEmpty && acknowledgement.rereads.isEmpty ? nil : acknowledgement
    }

    private mutating func completeOne(of reread: UInt64) {
        rereads[reread, default: 1] -= 1
        if rereads[reread] == 0 { finishedRereads.append(reread) }
    }
}
