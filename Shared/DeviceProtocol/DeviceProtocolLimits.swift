/// Sizes and names that both sides of the wire agree on (DeviceProtocol.md, Limits).
package enum DeviceProtocolLimits {
    /// The version that this build speaks.
    package static let version: UInt32 = 1
    /// The protocol's name in the TLS handshake (ALPN).
    package static let applicationProtocol = "mss/1"
    /// Bytes of one frame's message from a device; room for the sync points of about a thousand channels.
    package static let toGatewayBytes = 64 * 1_024
    /// Bytes of a message from a device that begins with `SubmitOperations`.
    package static let operationsBytes = 256 * 1_024
    /// How such a message begins: the tag of `SubmitOperations`.
    package static let operationsTag: [UInt8] = [0xA2, 0x01]
    /// Bytes of one frame's message to a device.
    package static let toDeviceBytes = 1_024 * 1_024
    /// Bytes at which a gateway closes a push frame and begins the next.
    package static let pushFrameBytes = 64 * 1_024
}
