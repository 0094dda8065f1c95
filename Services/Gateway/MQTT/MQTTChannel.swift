import DeviceProtocol

/// What a client has of one channel, in order; pure. The device protocol acknowledges up to an id, MQTT one by one.
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
    /// The highest id that was given to the client on this connection.
    private(set) var given: Int64 = 0

    /// Adds an entry that the client is to answer.
    mutating func give(_ oplogID: Int64) {
        steps.append(Step(position: oplogID, isDone: false))
        given = max(given, oplogID)
    }

    /// Adds the end of a batch, which nobody has to answer.
    mutating func pass(_ position: Int64) {
        guard position > (steps.last?.position ?? 0) else { return }
        steps.append(Step(position: position, isDone: true))
        given = max(given, position)
    }

    /// Notes an answer.
    mutating func answered(_ oplogID: Int64) {
        if let index = steps.firstIndex(where: { $0.position == oplogID }) { steps[index].isDone = true }
    }

    /// Up to where everything is answered since the last time; nil: no further.
    mutating func takeAnswered() -> Int64? {
        let count = steps.prefix { $0.isDone }.count
        guard count > 0 else { return nil }
        defer { steps.removeFirst(count) }
        return steps[count - 1].position
    }
}
