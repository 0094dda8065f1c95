import Conformance
import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf

// Connections of the devices that speak frames themselves.
extension FrameConnection {
    /// Connects to a gateway, through its proxy.
    ///
    /// - Parameter responder: called with each frame of the gateway; returns the device's answer.
    static func open(
        port: Int, tls: NIOSSLContext,
        responder: @escaping @Sendable (Mss_Device_V1_Packet) -> Mss_Device_V1_Packet?
    ) async throws -> FrameConnection {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(10))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try FrameConnection.install(
                        on: channel, tls: try NIOSSLClientHandler(context: tls, serverHostname: nil),
                        maxBytes: DeviceProtocolLimits.toDeviceBytes, responder: responder)
                }
            }
    }

    /// Sends the first frame.
    ///
    /// - Parameter number: the device's number of the connection.
    func sendConnect(
        instance: String, device: String, store: String, number: UInt64, bind: Mss_Device_V1_Bind
    ) {
        send(
            .with {
                $0.connect.protocolVersion = DeviceProtocolLimits.version
                $0.connect.instanceID = instance
                $0.connect.deviceID = device
                $0.connect.storeID = store
                $0.connect.osName = "iOS"
                $0.connect.appVersion = "1.0"
                $0.connect.connectionNumber = number
                $0.connect.bind = bind
            })
    }
}
