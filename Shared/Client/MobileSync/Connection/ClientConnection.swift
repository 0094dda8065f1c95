import DeviceProtocol
import NIOCore
import NIOPosix

/// Makes connections to the gateway, and passes frames between a connection and the engine.
struct ClientConnection: Sendable {
    private let configuration: SyncClientConfiguration
    private let sharedState: ClientSharedState
    private let tls: ClientTLS?

    /// - Throws: `SyncError.trust` when the files of the authority or of the identity cannot be read.
    init(configuration: SyncClientConfiguration, sharedState: ClientSharedState) throws(SyncError) {
        self.configuration = configuration
        self.sharedState = sharedState
        tls = try ClientTLS(configuration.trust, configuration.identity)
    }

    /// Connects, and runs the connection until it ends or the task is cancelled.
    func serve(_ engine: ClientEngine, at address: GatewayAddress) async -> ConnectionEnd {
        do {
            let channel = try await connect(to: address)
            return try await channel.executeThenClose { inbound, _ in
                let end = await serve(engine, channel.channel, inbound, at: address)
                await engine.closed(sendsClose: Task.isCancelled)
                return end
            }
        } catch {
            return end(of: error, at: address)
        }
    }

    private func end(of error: any Error, at address: GatewayAddress) -> ConnectionEnd {
        tls?.refusal(of: error, at: address).map { .refused($0) } ?? .lost(reason: "\(error)")
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
                        try channel.pipeline.syncOperations.addHandler(tls.handler(to: host))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
                    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
    }

    /// Runs three tasks until one of them ends the connection: received frames, changes by the app, and timers.
    private func serve(
        _ engine: ClientEngine, _ channel: any Channel, _ inbound: NIOAsyncChannelInboundStream<Mss_Device_V1_Packet>,
        at address: GatewayAddress
    ) async -> ConnectionEnd {
        // Listens before Connect is sent, so that no change is missed.
        let changes = sharedState.stateSignals.listen()
        if let end = await engine.opened(channel) { return end }
        return await withTaskGroup(of: ConnectionEnd?.self) { group in
            group.addTask {
                do {
                    for try await packet in inbound {
                        if let end = await engine.received(packet) { return end }
                    }
                    return .lost(reason: "the gateway closed the transport connection")
                } catch {
                    return end(of: error, at: address)
                }
            }
            group.addTask {
                for await _ in changes {
                    if let end = await engine.sharedStateChanged() { return end }
                }
                return nil
            }
            group.addTask { await runTimers(engine) }
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

    /// Calls the engine at each time that it has requested, until the connection ends or the task is cancelled.
    private func runTimers(_ engine: ClientEngine) async -> ConnectionEnd? {
        while !Task.isCancelled {
            // Listens before the tick, so that no timer signal is missed.
            let timerSignals = sharedState.timerSignals.listen()
            let (end, next) = await engine.ticked()
            if let end { return end }
            // `Connected` sets the time of the first ping, so until then the engine is called every second.
            let longest = ContinuousClock.now + (await engine.record.connectedAt == nil ? .seconds(1) : .seconds(30))
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await Task.sleep(until: min(next ?? longest, longest), clock: .continuous) }
                group.addTask { for await _ in timerSignals { return } }
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
