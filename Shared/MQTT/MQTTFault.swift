/// Why a connection is ended; numbers are reason codes of MQTT 5.0, 2.4.
package enum MQTTFault: UInt8, Error, Hashable, Sendable {
    case malformedPacket = 0x81
    case protocolError = 0x82
    case unsupportedVersion = 0x84
    case packetTooLarge = 0x95
}
