import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL

/// Makes connections to the gateway and carries frames between them and the engine.
struct ClientConnection: Sendable {
    private let configuration: SyncClientConfiguration
    private let board: ClientBoard
    private let tls: NIOSSLContext?

    /// - Throws: `SyncError.trust` when the authority's or the identity's files cannot be read.
    init(configuration: SyncClientConfiguration, board: ClientBoard) throws(SyncError) {
        self.configuration = configuration
        self.board = board
        tls = try Self.makeContext(configuration.trust, configuration.identity)
    }

    private static func makeContext(
        _ trust: SyncTrust, _ identity: SyncIdentity?
    ) throws(SyncError) -> NIOSSLContext? {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        do {
            switch trust.kind {
            case .plaintext: return nil
            case .system: break
            case .certificateAuthority(let file):
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file))
            }
            if let identity {
                tls.certificateChain = try NIOSSLCertificate.fromPEMFile(identity.certificateFile)
                    .map { .certificate($0) }
                tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: identity.privateKeyFile, format: .pem))
            }
            return try NIOSSLContext(configuration: tls)
        } catch {
            throw SyncError(
                .trust, "the authority's or the identity's files cannot be used (\(error)); check their paths")
        }
    }

    /// Connects and serves until the connection ends or the task is cancelled.
    func serve(_ engine: ClientEngine, at address: GatewayAddress) async -> ConnectionEnd {
        do {
            let channel = try await connect(to: address)
            return try await channel.executeThenClose { inbound, _ in
                let end = await serve(engine, channel.channel, inbound)
                await engine.closed(saysGoodbye: Task.isCancelled)
                return end
            }
        } catch {
            return .lost(reason: "\(error)")
        }
    }

    private func connect(
        to address: GatewayAddress
    ) async throws -> NIOAsyncChannel<Mss_Device_V1_Packet, ByteBuffer> {
        let tls = tls
        let host = address.host
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.nanoseconds(configuration.connectTimeout.nanoseconds))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: host, port: address.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        // An address has no place in the handshake's server name; it is checked against the
                        // certificate.
                        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : host))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
                    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
    }

    /// Three things at once, until one says that the connection is over: frames, what the app changes, time.
    private func serve(
        _ engine: ClientEngine, _ channel: any Channel, _ inbound: NIOAsyncChannelInboundStream<Mss_Device_V1_Packet>
    ) async -> ConnectionEnd {
        // From before Connect, so that no change falls between the two.
        let changes = board.changes.listen()
        if let end = await engine.opened(channel) { return end }
        return await withTaskGroup(of: ConnectionEnd?.self) { group in
            group.addTask {
                do {
                    for try await packet in inbound {
                        if let end = await engine.received(packet) { return end }
                    }
                    return .lost(reason: "the gateway hung up")
                } catch {
                    return .lost(reason: "\(error)")
                }
            }
            group.addTask {
                for await _ in changes {
                    if let end = await engine.boardChanged() { return end }
                }
                return nil
            }
            group.addTask { await keepTime(engine) }
            var result = ConnectionEnd.lost(reason: "cancelled")
            for await end in group {
                guard let end else { continue }
                result = end
                break
            }
            group.cancelAll()
            return result
        }
    }

    /// Calls the engine whenever it has asked for it, until the connection is over or the task is cancelled.
    private func keepTime(_ engine: ClientEngine) async -> ConnectionEnd? {
        while !Task.isCancelled {
            // From before the look, so that no alarm falls between the two.
            let alarms = board.alarms.listen()
            let (end, next) = await engine.ticked()
            if let end { return end }
            // The greeting brings the first ping's time, so until then this looks again every second.
            let longest = ContinuousClock.now + (await engine.connectedAt == nil ? .seconds(1) : .seconds(30))
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await Task.sleep(until: min(next ?? longest, longest), clock: .continuous) }
                group.addTask { for await _ in alarms { return } }
                await group.next()
                group.cancelAll()
            }
        }
        return nil
    }
}

extension Duration {
    /// The duration in nanoseconds, for NIO.
    fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
