import DeviceProtocol
import MobileSync
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf

/// The gateway under test and what the kit may use around it.
struct GatewayTarget: Sendable {
    let host: String
    let port: Int
    /// The authority that signed the gateway's certificate, as a PEM file.
    let authority: String
    let api: ConformanceAPI
    /// A business type with device target; cases that need one are not supported without.
    let deviceBizType: String?
    /// An instance whose signature switch is on, and who signs for it.
    let signed: (instance: String, signer: ConnectSigner)?
    /// An instance that binds device ids to secrets.
    let bindingInstance: String?

    /// A device and a user that nobody has seen before.
    func fresh() -> DeviceIdentity { .fresh(instance: api.instance) }

    /// A TLS connection on which nothing has been said yet.
    ///
    /// - Parameter applicationProtocols: the ALPN names offered.
    func connect(applicationProtocols: [String] = ["mss/1"]) async throws -> FrameConnection {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(authority)
        configuration.applicationProtocols = applicationProtocols
        let tls = try NIOSSLContext(configuration: configuration)
        let host = host
        let connection = try await connect { channel in
            let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
            return try NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : host)
        }
        try await connection.expectReady()
        return connection
    }

    /// A TCP connection on which no handshake was begun.
    func connectWithoutTLS() async throws -> FrameConnection { try await connect { _ in nil } }

    private func connect(
        _ tls: @escaping @Sendable (any Channel) throws -> (any ChannelHandler)?
    ) async throws -> FrameConnection {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try FrameConnection.install(
                        on: channel, tls: try tls(channel), maxBytes: DeviceProtocolLimits.toDeviceBytes)
                }
            }
    }

    /// A connection that the gateway has greeted.
    ///
    /// - Parameters:
    ///   - binds: with the identity's user, as bind number 1, and its answer awaited.
    ///   - position: of the user's channel, told in the bind.
    ///   - more: what Connect has beside.
    func open(
        _ identity: DeviceIdentity, binds: Bool = true, position: Int64 = 0,
        _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) async throws -> ScriptedDevice {
        let connection = try await connect()
        var packet = identity.connect
        let point = Mss_Device_V1_SyncPoint.with {
            $0.bizType = api.bizType
            $0.oplogID = position
        }
        if binds { packet.connect.bind = identity.bind(1, points: position > 0 ? [point] : []) }
        more(&packet.connect)
        connection.send(packet)
        let device = ScriptedDevice(
            connection: connection, identity: identity, bizType: api.bizType, position: position,
            greeting: try await connection.find("Connected") { packets in
                packets.lazy.compactMap { if case .connected(let greeting)? = $0.body { greeting } else { nil } }.first
            })
        if binds { try await device.expectBound(1) }
        return device
    }
}
