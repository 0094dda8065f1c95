package import NIOCore

/// A packet of the server.
package enum MQTTServerPacket: Hashable, Sendable {
    /// - Parameter keepAlive: the keep-alive in seconds that replaces the client's.
    case connack(isSessionPresent: Bool, MQTTReason, keepAlive: UInt16? = nil, reference: String? = nil)
    case publish(MQTTPublish)
    case puback(packetID: UInt16, MQTTReason)
    case pubrec(packetID: UInt16, MQTTReason)
    case pubcomp(packetID: UInt16, MQTTReason)
    case suback(packetID: UInt16, [MQTTReason])
    case unsuback(packetID: UInt16, [MQTTReason])
    case pingresp
    /// Version 3.1.1 has no such server packet, so nothing is sent.
    case disconnect(MQTTReason, text: String = "", reference: String? = nil)
}

/// Data for a client.
package struct MQTTPublish: Hashable, Sendable {
    package var topic: String
    package var payload: ByteBuffer
    /// 0, or 1 with a packet id.
    package var packetID: UInt16?
    /// Whether it was sent before, on this connection or another.
    package var isDuplicate = false
    /// Seconds; nil: no expiry.
    package var expiry: UInt32?
    /// Whether the payload is UTF-8; only version 5 tells the client.
    package var isText = false
    package var userProperties: [MQTTUserProperty] = []

    package init(topic: String, payload: ByteBuffer, packetID: UInt16?) {
        self.topic = topic
        self.payload = payload
        self.packetID = packetID
    }
}

/// Reason codes of MQTT 5.0, 2.4. In version 3.1.1, `CONNACK` and `SUBACK` have other codes.
package enum MQTTReason: UInt8, Hashable, Sendable {
    case success = 0x00
    case grantedQoS1 = 0x01
    case noSubscriptionExisted = 0x11
    case unspecifiedError = 0x80
    case malformedPacket = 0x81
    case protocolError = 0x82
    case unsupportedVersion = 0x84
    case clientIDNotValid = 0x85
    case badUserNameOrPassword = 0x86
    case notAuthorized = 0x87
    case serverUnavailable = 0x88
    case serverBusy = 0x89
    case serverShuttingDown = 0x8B
    case sessionTakenOver = 0x8E
    case topicFilterInvalid = 0x8F
    case packetIDNotFound = 0x92
    case packetTooLarge = 0x95
    case quotaExceeded = 0x97
    case useAnotherServer = 0x9C
    case sharedSubscriptionsNotSupported = 0x9E
    case connectionRateExceeded = 0x9F
    case keepAliveTimeout = 0x8D

    /// The code in a `CONNACK` of version 3.1.1 (3.2.2.3).
    var connectReturnCode: UInt8 {
        switch self {
        case .success: 0
        case .unsupportedVersion: 1
        case .clientIDNotValid: 2
        case .badUserNameOrPassword: 4
        case .notAuthorized: 5
        default: 3
        }
    }
}
