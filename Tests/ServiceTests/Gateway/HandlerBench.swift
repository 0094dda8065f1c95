import BusMessages
import Credentials
import DeviceProtocol
import NIOCore
import NIOEmbedded
import SwiftProtobuf
import SyncModel

@testable import Gateway
@testable import MQTT
@testable import ServiceKit

/// One device connection without a socket: its handler on an event loop that the test runs, in a gateway without a
/// broker. The test sets the lease and the control data.
final class HandlerBench {
    /// A pipeline end that keeps written data while the socket is full.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        var isFull = false
        private var waiting: [(NIOAny, EventLoopPromise<Void>?)] = []

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if isFull { return waiting.append((data, promise)) }
            context.write(data, promise: promise)
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            for (_, promise) in waiting { promise?.fail(ChannelError.ioOnClosedChannel) }
        }
    }

    let runtime: GatewayRuntime
    let lease: GatewayLease
    private let channel = EmbeddedChannel()
    private let control: ControlConnection
    private let handler: DeviceHandler
    private let socket = Socket()
    private var version: Int64 = 0

    /// Makes a gateway with a lease.
    ///
    /// - Parameters:
    ///   - isMQTT: whether the device is an MQTT client.
    ///   - recorder: receives the messages that the gateway sends. A nil value means: the broker is unavailable.
    ///   - clock: the gateway's clocks.
    ///   - leasedAt: when the lease was requested; an hour from now by default, so that it does not end.
    init(
        _ configurations: [SyncConfiguration], isMQTT: Bool = false, over recorder: BusRecorder? = nil,
        clock: ProcessClock = .system, leasedAt: ContinuousClock.Instant = .now + .seconds(3_600)
    ) throws {
        let bridge = isMQTT ? MQTTBridge(now: { ProcessClock.system.wallTime() }) : nil
        let context = try GatewaySocketFixture.context()
        if let bus = recorder?.makeBus() {
            let wakeUps = AsyncStream.makeStream(of: Void.self)
            let directory = ControlDirectory(bus: bus, keysFor: .device, wakeUps: wakeUps, logger: context.logger) {}
            control = ControlConnection(bus: bus, directory: directory)
        } else {
            control = ControlConnection(context, keysFor: .device)
        }
        runtime = GatewayRuntime(
            gatewayID: "g", limits: SessionLimits(), admission: AdmissionLimits(),
            ring: KeyRing.empty.sealing(for: .device), control: control, clock: clock, logger: context.logger)
        lease = runtime.makeLease()
        handler = DeviceHandler(gateway: runtime, number: 1, transport: bridge, acceptedAt: .now)
        lease.apply(.with { $0.epoch = 1 }, requestedAt: leasedAt, under: 0)
        setConfigurations(configurations)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(socket)
        if let bridge { try channel.pipeline.syncOperations.addHandler(bridge) }
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    /// Sets whether the bytes that wait for the socket are below the channel's limit.
    func setWritable(_ isWritable: Bool) {
        channel.isWritable = isWritable
        channel.pipeline.fireChannelWritabilityChanged()
    }

    /// Makes the socket accept no more data.
    func fillSocket() { socket.isFull = true }

    var isConnected: Bool { channel.isActive }

    /// Replaces the gateway's control data of the test's instance, without an event for the session.
    func setConfigurations(_ configurations: [SyncConfiguration]) {
        version += 1
        control.directory.apply(
            .with {
                $0.version = version
                $0.instances = [SessionBench.instance.bus]
                $0.configurations = configurations.map(\.bus)
            })
    }

    /// Sends an event to the session with the gateway's current session context.
    func handle(_ event: SessionEvent) { handler.handle(event) }

    /// Receives a frame of the device.
    func receive(_ fill: (inout Mss_Device_V1_Packet) -> Void) { handle(.frame(.with(fill))) }

    /// Lets the gateway's second pass.
    func tick() {
        handler.tick()
        turn()
    }

    /// Runs the waiting tasks of the event loop.
    func turn() { channel.embeddedEventLoop.run() }

    /// The handle through which other threads reach the session.
    var session: SessionHandle {
        let loop = channel.embeddedEventLoop
        return SessionHandle(number: 1, eventLoop: loop, handler: NIOLoopBound(handler, eventLoop: loop))
    }

    /// Marks reports of the device as recorded.
    func recorded(_ reports: [UInt64]) { for report in reports { handler.recorded(report) } }

    /// Sends the waiting `ConfirmRecorded`, as at the end of a turn.
    func flushRecorded() { handler.flushRecorded() }

    /// The writes since the last call, each with its frames.
    func writes() throws -> [[Mss_Device_V1_Packet]] {
        var writes: [[Mss_Device_V1_Packet]] = []
        var decoder = PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            var packets: [Mss_Device_V1_Packet] = []
            while let packet = try decoder.decode(buffer: &buffer) { packets.append(packet) }
            writes.append(packets)
        }
        return writes
    }

    /// The frames written since the last call.
    func written() throws -> [Mss_Device_V1_Packet] { try writes().flatMap { $0 } }

    /// The ids of the oplogs written since the last call.
    func pushed() throws -> [Int64] {
        try written().flatMap { $0.push.batches }.flatMap { $0.entries.map(\.oplogID) }
    }

    // MARK: An MQTT client

    /// Receives a packet of the MQTT client.
    func client(sends packet: MQTTClientPacket) throws {
        try channel.writeInbound(packet)
        turn()
    }

    /// Connects an MQTT client and opens its session with these channels. The client has not subscribed yet.
    func openClient(_ channels: [(String, Int64, Int64, Int64)], receiveMaximum: UInt16) throws {
        var connect = MQTTConnect(
            version: .v5, isCleanStart: false, keepAlive: 30, clientID: "d", userName: "i/u",
            password: Array("session".utf8))
        connect.receiveMaximum = receiveMaximum
        try client(sends: .connect(connect))
        handle(.registered(SessionBench.reply(channels), bindNumber: 1))
        turn()
        _ = try published()
    }

    func subscribe() throws {
        try client(sends: .subscribe(packetID: 1, [.init(filter: "#", qualityOfService: 1)]))
    }

    /// Packet ids and payloads of the `PUBLISH` packets written since the last call.
    func published() throws -> [(packetID: UInt16, payload: String)] {
        var found: [(UInt16, String)] = []
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            while let head = buffer.readInteger(as: UInt8.self) {
                var content = buffer.readSlice(length: Self.readNumber(&buffer)) ?? ByteBuffer()
                guard head >> 4 == 3 else { continue }
                content.moveReaderIndex(forwardBy: Int(content.readInteger(as: UInt16.self) ?? 0))
                let packetID = content.readInteger(as: UInt16.self) ?? 0
                content.moveReaderIndex(forwardBy: Self.readNumber(&content))
                found.append((packetID, String(buffer: content)))
            }
        }
        return found
    }

    private static func readNumber(_ buffer: inout ByteBuffer) -> Int {
        var (number, shift) = (0, 0)
        while let digit = buffer.readInteger(as: UInt8.self) {
            number |= Int(digit & 0x7F) << shift
            if digit < 0x80 { break }
            shift += 7
        }
        return number
    }

    /// Connects with the user bound, and opens the session with these channels as the reply of a registration has them.
    func open(_ channels: [(String, Int64, Int64, Int64)], bind: UInt32 = 1) throws {
        receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.appVersion = "1"
            $0.connect.bind.bindNumber = bind
            $0.connect.bind.userID = "u"
            $0.connect.bind.sessionID = "session"
        }
        turn()
        handle(.registered(SessionBench.reply(channels), bindNumber: bind))
        _ = try written()
    }
}
