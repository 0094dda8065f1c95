import DeviceProtocol
import MobileSync
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf

/// The gateway under test, and the services that the suite uses for it.
struct GatewayTarget: Sendable {
    let host: String
    let port: Int
    /// PEM file with the authority of the gateway's certificate.
    let authority: String
    let api: ConformanceAPI
    /// A Sync ID with target device. Without it the cases that need it are not supported.
    let deviceBizType: String?
    /// An instance that requires signatures, with a signer.
    let signed: (instance: String, signer: ConnectSigner)?
    /// An instance that binds device ids to secrets.
    let bindingInstance: String?

    /// A new device and a new user.
    func fresh() -> DeviceIdentity { .fresh(instance: api.instance) }

    /// Opens a TLS connection and sends nothing.
    ///
    /// - Parameter applicationProtocols: the offered ALPN names.
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

    /// Opens a TCP connection without a TLS handshake.
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

    /// Opens a connection and waits for `Connected`.
    ///
    /// - Parameters:
    /// - binds: whether to bind the user with bind number 1, and to wait for the result.
    /// - position: reported position of the user's channel.
    /// - more: further changes of `Connect`.
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

    /// Opens a connection of a new user, whose channel has ten oplogs.
    ///
    /// - Returns: the device and the oplog ids.
    func openWithHistory() async throws -> (ScriptedDevice, [Int64]) {
        let identity = fresh()
        let ids = try await api.push((0..<10).map { "\($0)" }, to: identity.user)
        return (try await open(identity), ids)
    }

    /// Checks that the gateway closes a connection with code 5000 after a changed `Connect`.
    func expectRefused(_ change: (inout Mss_Device_V1_Connect) -> Void) async throws {
        let connection = try await connect()
        var packet = fresh().connect
        change(&packet.connect)
        connection.send(packet)
        try await connection.expectClose(5000)
    }
}
