import DeviceProtocol

/// A Connect whose nonce is being claimed, and the frames that came behind it.
struct UnprovenConnect {
    /// Frames that are kept (DeviceProtocol.md, Framing).
    static let framesMax = 16

    let connect: Mss_Device_V1_Connect
    var frames: [Mss_Device_V1_Packet] = []
}
