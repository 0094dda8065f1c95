import DeviceProtocol

/// The client's acknowledgements in one channel, in order; pure. The device protocol acknowledges up to an id, MQTT
/// acknowledges each message.
struct MQTTChannel {
    /// A channel of a connection.
    struct Key: Hashable {
        let kind: Mss_Device_V1_ChannelKind
        let bizType: String
        let bindNumber: UInt32
    }

    private struct Step {
        let position: Int64
        var isDone: Bool
    }

    private var steps: [Step] = []
    /// The highest id that was sent to the client on this connection.
    private(set) var highestID: Int64 = 0

    /// Adds an entry that the client must acknowledge.
    mutating func add(_ oplogID: Int64) {
        steps.append(Step(position: oplogID, isDone: false))
        highestID = max(highestID, oplogID)
    }

    /// Adds the end of a batch, which needs no acknowledgement.
    mutating func addEnd(_ position: Int64) {
        guard position > (steps.last?.position ?? 0) else { return }
        steps.append(Step(position: position, isDone: true))
        highestID = max(highestID, position)
    }

    /// Records the acknowledgement of an entry.
    mutating func acknowledge(_ oplogID: Int64) {
        if let index = steps.firstIndex(where: { $0.position == oplogID }) { steps[index].isDone = true }
    }

    /// Returns and removes the acknowledged beginning: the id up to which all entries are acknowledged; nil: it did not
    /// rise.
    mutating func dequeueAcknowledged() -> Int64? {
        let count = steps.prefix { $0.isDone }.count
        guard count > 0 else { return nil }
        defer { steps.removeFirst(count) }
        return steps[count - 1].position
    }
}
