import AMQP
import BusMessages
import Credentials
import DeviceProtocol
import NIOCore
import NIOEmbedded
import SyncModel

@testable import Gateway
@testable import ServiceKit

/// A gateway: its real runtime and handlers, on an event loop that the simulation drives.
// Unchecked: see Simulation.
final class SimulatedGateway: @unchecked Sendable {
    private struct Connection {
        let channel: EmbeddedChannel
        /// Notifies the device that the connection has ended.
        let end: () -> Void
    }

    /// The end of the channel's pipeline: written data goes to the network at once.
    private final class Wire: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        private weak var link: SimulatedLink?
        private var decoder = PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)

        init(_ link: SimulatedLink) { self.link = link }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            var buffer = unwrapOutboundIn(data)
            while let packet = try? decoder.decode(buffer: &buffer) { link?.toDevice(packet) }
            promise?.succeed()
        }

        func flush(context: ChannelHandlerContext) {}
    }

    /// The end of the pipeline of an MQTT client's connection.
    private final class MQTTWire: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        private weak var line: SimulatedMQTTLine?

        init(_ line: SimulatedMQTTLine) { self.line = line }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            line?.toClient(unwrapOutboundIn(data))
            promise?.succeed()
        }

        func flush(context: ChannelHandlerContext) {}
    }

    /// Passes the runtime to the handlers of the bus. The runtime is built after the bus, so the references are weak.
    // Unchecked: see Simulation.
    private final class Link: @unchecked Sendable {
        weak var runtime: GatewayRuntime?
    }

    private static let limits = {
        var limits = SessionLimits()
        limits.firstResend = .seconds(1)
        return limits
    }()
    private static let turn = TimeAmount.milliseconds(100)
    // Unchecked: see Simulation.
    private struct Pacing: @unchecked Sendable {
        let pacer: GlobalPushThrottle
        let done: () -> Void

        func run() async {
            await pacer.notifyWaiting()
            done()
        }
    }

    private static let sweepEvery = Duration.seconds(5)
    let process: SimulatedProcess
    private let loop = EmbeddedEventLoop()
    private let directory: ControlDirectory
    /// The end of the time in which the gateway receives no control data.
    private var isUnawareUntil = Duration.zero
    private let runtime: GatewayRuntime
    private let lease: GatewayLease
    private var connections: [UInt64: Connection] = [:]
    private var lastConnection: UInt64 = 0

    init(_ name: String, number: UInt64, broker: SimulatedBroker, database: SimulatedDatabase) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        let simulation = process.simulation
        self.process = process
        let link = Link()
        let bus = MessageBus(
            extra: .notices(gatewayID: name),
            consumptions: [
                AMQPConsumption(queue: Topology.noticesQueue(gatewayID: name), prefetch: nil) {
                    link.runtime?.received($0)
                }
            ], answers: [.stored, .verdicts, .relayed], replyKey: { "\($0.rawValue) \(process.id)" },
            clock: process.clock,
            logger: process.logger,
            over: process.connecting(to: broker))
        let directory = ControlDirectory(
            bus: bus, keysFor: .device, wakeUps: AsyncStream.makeStream(of: Void.self), logger: process.logger
        ) { link.runtime?.contextChanged() }
        self.directory = directory
        directory.apply(database.store.snapshot)
        let runtime = GatewayRuntime(
            gatewayID: name, limits: Self.limits, admission: AdmissionLimits(),
            ring: KeyRing.empty.sealing(for: .device), control: ControlConnection(bus: bus, directory: directory),
            clock: process.clock, random: { simulation.chance() }, logger: process.logger)
        link.runtime = runtime
        bus.onConnectionChange { isConnected in if isConnected { link.runtime?.registerAll() } }
        self.runtime = runtime
        lease = runtime.makeLease()
        process.afterwards = { [loop] in loop.run() }
        var turns = 0
        process.every(.nanoseconds(Self.turn.nanoseconds)) { [weak self] in
            turns += 1
            bus.expireRequests()
            runtime.reporter.flush(withKept: turns % 10 == 0)
            if turns % 10 == 0 { runtime.tick() }
            self?.loop.advanceTime(by: Self.turn)
        }
        process.every(.seconds(1)) { [weak self] in self?.refresh(from: database) }
        let pacer = runtime.makeThrottle(sessionsPerSecond: 1_000) { until in
            // Unchecked: when the process dies here, the continuation is never resumed.
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                simulation.after(until - simulation.now) { process.perform { continuation.resume() } }
            }
        }
        var isPacing = false
        process.every(.milliseconds(250)) {
            if isPacing { return }
            isPacing = true
            let done = { isPacing = false }
            simulation.begin(Pacing(pacer: pacer, done: done).run)
        }
        process.every(Self.sweepEvery) {
            simulation.begin { await runtime.sweep() }
        }
        lease.renewIfDue()
        process.every(GatewayLease.checkEvery) { [lease] in lease.renewIfDue() }
    }

    // MARK: Rules

    /// Cuts the gateway off from control data for a while.
    func cutOffFromRules(for duration: Duration) { isUnawareUntil = process.simulation.elapsed + duration }

    /// Requests newer control data, like `ControlDirectory.refresh`.
    private func refresh(from database: SimulatedDatabase) {
        guard database.isUp, isUnawareUntil <= process.simulation.elapsed else { return }
        let asked = directory.version
        guard database.store.control.version != asked else { return }
        let snapshot = database.store.snapshot
        let simulation = process.simulation
        simulation.after(simulation.pick(.milliseconds(1), .milliseconds(20))) { [weak self] in
            self?.process.perform { [weak self] in self?.directory.apply(snapshot) }
        }
    }

    /// The gateway's control version, for checks.
    var rulesVersion: Int64 { directory.version }

    /// The gateway's configuration of a Sync ID, for checks.
    func rule(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
        directory.configuration(instanceID, bizType)
    }

    // MARK: Devices

    /// Accepts the connection of a device.
    func accept(_ link: SimulatedLink) {
        let channel = open { handler in
            [Wire(link), handler]
        } end: {
            link.closedByGateway()
        }
        link.whenAtGateway = { [weak self, unowned link] packet in
            self?.process.perform {
                guard channel.isActive else { return }
                link.whenGatewayReceives(packet)
                _ = try? channel.writeInbound(packet)
            }
        }
        link.whenClosedAtGateway = { [weak self] in self?.process.perform { channel.close(promise: nil) } }
        loop.run()
    }

    /// Accepts the connection of an MQTT client.
    func accept(_ line: SimulatedMQTTLine) {
        let bridge = MQTTBridge(now: runtime.contexts.databaseTime.current)
        let channel = open(transport: bridge) { handler in
            [MQTTWire(line), bridge, handler]
        } end: {
            line.closedByGateway()
        }
        line.whenAtGateway = { [weak self] packet in
            self?.process.perform {
                guard channel.isActive else { return }
                _ = try? channel.writeInbound(packet)
            }
        }
        line.whenClosedAtGateway = { [weak self] in self?.process.perform { channel.close(promise: nil) } }
        loop.run()
    }

    private func open(
        transport: (any DeviceTransport)? = nil, _ handlers: (DeviceHandler) -> [any ChannelHandler],
        end: @escaping () -> Void
    ) -> EmbeddedChannel {
        lastConnection += 1
        let number = lastConnection
        let channel = EmbeddedChannel(loop: loop)
        channel.connect(to: Self.anyAddress, promise: nil)
        connections[number] = Connection(channel: channel, end: end)
        let handler = DeviceHandler(
            gateway: runtime, number: number, transport: transport, acceptedAt: runtime.clock.now())
        try? channel.pipeline.syncOperations.addHandlers(handlers(handler))
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in
            self?.connections.removeValue(forKey: number)?.end()
        }
        return channel
    }

    // A literal address cannot fail.
    private static let anyAddress: SocketAddress = {
        do { return try SocketAddress(ipAddress: "127.0.0.1", port: 1) } catch { fatalError("\(error)") }
    }()

    /// Kills the process and closes its sockets.
    func kill() {
        process.kill()
        let open = connections.sorted { $0.key < $1.key }
        connections = [:]
        for (_, connection) in open {
            connection.channel.close(promise: nil)
            connection.end()
        }
        loop.run()
    }
}
