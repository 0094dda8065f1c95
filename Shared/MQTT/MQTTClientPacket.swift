/// What a client sends, of versions 3.1.1 and 5.0, as far as a server that only sends data looks at it.
package enum MQTTClientPacket: Hashable, Sendable {
    case connect(MQTTConnect)
    case publish(MQTTReceivedPublish)
    /// Of a `PUBLISH` with QoS 1 that it was sent.
    case puback(packetID: UInt16)
    case subscribe(packetID: UInt16, [MQTTSubscription])
    case unsubscribe(packetID: UInt16, filters: [String])
    case pingreq
    case disconnect
    /// Of an exchange that this server has not begun.
    case auth
    /// The second step of a QoS 2 publication.
    case pubrel(packetID: UInt16)
}

/// The versions that this server speaks, by protocol level.
package enum MQTTVersion: UInt8, Hashable, Sendable {
    case v311 = 4
    case v5 = 5
}

/// The first packet of a connection.
package struct MQTTConnect: Hashable, Sendable {
    package var version: MQTTVersion
    /// Whether what the server keeps of an earlier session counts no more.
    package var isCleanStart: Bool
    /// Seconds; 0: none.
    package var keepAlive: UInt16
    package var clientID: String
    package var userName: String?
    package var password: [UInt8]?
    /// `PUBLISH` packets without an answer that it takes at one time.
    package var receiveMaximum: UInt16 = .max
    /// Bytes of a packet that it takes; nil: any.
    package var maximumPacketSize: UInt32?
    /// Names and values, in order.
    package var userProperties: [MQTTUserProperty] = []
}

/// A name and a value that the protocol gives no meaning.
package struct MQTTUserProperty: Hashable, Sendable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// One line of a `SUBSCRIBE`.
package struct MQTTSubscription: Hashable, Sendable {
    package var filter: String
    /// The highest that it wants.
    package var qualityOfService: UInt8

    package init(filter: String, qualityOfService: UInt8) {
        self.filter = filter
        self.qualityOfService = qualityOfService
    }
}

/// Data of a client's; this server takes none.
package struct MQTTReceivedPublish: Hashable, Sendable {
    package var topic: String
    package var qualityOfService: UInt8
    /// 0 for QoS 0.
    package var packetID: UInt16
}
