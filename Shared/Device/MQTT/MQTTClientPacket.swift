/// A packet of a client, MQTT 3.1.1 or 5.0, with the fields that a server which only sends data reads.
package enum MQTTClientPacket: Hashable, Sendable {
    case connect(MQTTConnect)
    case publish(MQTTReceivedPublish)
    /// Acknowledges a `PUBLISH` with QoS 1.
    case puback(packetID: UInt16)
    case subscribe(packetID: UInt16, [MQTTSubscription])
    case unsubscribe(packetID: UInt16, filters: [String])
    case pingreq
    case disconnect
    /// Part of an authentication exchange, which this server never begins.
    case auth
    /// The second step of a QoS 2 publication.
    case pubrel(packetID: UInt16)
}

/// The supported versions, by protocol level.
package enum MQTTVersion: UInt8, Hashable, Sendable {
    case v311 = 4
    case v5 = 5
}

/// The first packet of a connection.
package struct MQTTConnect: Hashable, Sendable {
    package var version: MQTTVersion
    /// Whether to discard the server's state of an earlier session.
    package var isCleanStart: Bool
    /// Seconds; 0: no keep-alive.
    package var keepAlive: UInt16
    package var clientID: String
    package var userName: String?
    package var password: [UInt8]?
    /// Maximum number of unacknowledged `PUBLISH` packets.
    package var receiveMaximum: UInt16 = .max
    /// Maximum packet size in bytes; nil: unlimited.
    package var maximumPacketSize: UInt32?
    /// Names and values, in order.
    package var userProperties: [MQTTUserProperty] = []
}

/// A name and a value without a meaning in MQTT.
package struct MQTTUserProperty: Hashable, Sendable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// One entry of a `SUBSCRIBE`.
package struct MQTTSubscription: Hashable, Sendable {
    package var filter: String
    /// The highest requested QoS.
    package var qualityOfService: UInt8

    package init(filter: String, qualityOfService: UInt8) {
        self.filter = filter
        self.qualityOfService = qualityOfService
    }
}

/// Data from a client; this server accepts none.
package struct MQTTReceivedPublish: Hashable, Sendable {
    package var topic: String
    package var qualityOfService: UInt8
    /// 0 for QoS 0.
    package var packetID: UInt16
}
