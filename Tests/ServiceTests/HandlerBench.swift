import BusMessages
import DeviceProtocol
import NIOCore
import NIOEmbedded
import SwiftProtobuf
import SyncModel

@testable import Gateway
@testable import MQTT
@testable import ServiceKit

/// One device connection without a socket: its handler, on an event loop that the test turns, in a gateway without a
/// broker whose lease and control data the test sets.
final class HandlerBench {
    /// What is written stays in this process while the socket takes nothing.
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

    let core: GatewayCore
    let lease: GatewayLease
    private let channel = EmbeddedChannel()
    private let control: ControlConnection
    private let handler: DeviceHandler
    private let socket = Socket()
    private var version: Int64 = 0

    /// A lease is held, for an hour.
    ///
    /// - Parameters:
    ///   - isMQTT: the device is an MQTT client.
    ///   - recorder: takes what the gateway sends; nil: the broker is away.
    init(_ configurations: [SyncConfiguration], isMQTT: Bool = false, over recorder: BusRecorder? = nil) throws {
        let bridge = isMQTT ? MQTTBridge(now: { ProcessClock.system.wallTime() }) : nil
        let context = try GatewaySocketFixture.context()
        if let bus = recorder?.makeBus() {
            let wakeUps = AsyncStream.makeStream(of: Void.self)
            let directory = ControlDirectory(bus: bus, keysFor: .device, wakeUps: wakeUps, logger: context.logger) {}
            control = ControlConnection(bus: bus, directory: directory)
        } else {
            control = ControlConnection(context, keysFor: .device)
        }
        core = GatewayCore(context, limits: SessionLimits(), admission: AdmissionLimits(), control: control)
        lease = core.makeLease()
        handler = DeviceHandler(gateway: core, number: 1, transport: bridge, acceptedAt: .now)
        lease.take(.with { $0.epoch = 1 }, askedAt: .now + .seconds(3_600))
        rule(configurations)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(socket)
        if let bridge { try channel.pipeline.syncOperations.addHandler(bridge) }
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    /// The bytes that wait for the socket are above, or below, the limit up to which a channel is writable.
    func setWritable(_ isWritable: Bool) {
        channel.isWritable = isWritable
        channel.pipeline.fireChannelWritabilityChanged()
    }

    /// The socket takes nothing more.
    func fillSocket() { socket.isFull = true }

    var isConnected: Bool { channel.isActive }

    /// Control data of the bench's instance comes to the gateway; nobody has told the session yet.
    func rule(_ configurations: [SyncConfiguration]) {
        version += 1
        control.directory.take(
            .with {
                $0.version = version
                $0.instances = [SessionBench.instance.bus]
                $0.configurations = configurations.map(\.bus)
            })
    }

    /// Something happens to the session, in the gateway's own surroundings.
    func happen(_ event: SessionEvent) { handler.handle(event) }

    /// A frame comes in.
    func receive(_ fill: (inout Mss_Device_V1_Packet) -> Void) { happen(.frame(.with(fill))) }

    /// The event loop does what waits for it.
    func turn() { channel.embeddedEventLoop.run() }

    /// The session as other threads reach it.
    var session: SessionHandle {
        let loop = channel.embeddedEventLoop
        return SessionHandle(number: 1, eventLoop: loop, handler: NIOLoopBound(handler, eventLoop: loop))
    }

    /// Reports of the device are durable.
    func recorded(_ reports: [UInt64]) { for report in reports { handler.recorded(report) } }

    /// Nothing has gone to the device since.
    func tellRecorded() { handler.tellRecorded() }

    /// The writes since it was asked last, each with its frames.
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

    /// The frames written since it was asked last.
    func written() throws -> [Mss_Device_V1_Packet] { try writes().flatMap { $0 } }

    /// The oplogs among them.
    func pushed() throws -> [Int64] {
        try written().flatMap { $0.push.batches }.flatMap { $0.entries.map(\.oplogID) }
    }

    // MARK: An MQTT client

    /// The client sends a packet.
    func client(sends packet: MQTTClientPacket) throws {
        try channel.writeInbound(packet)
        turn()
    }

    /// The client connects, and its session opens with these channels. It has not subscribed yet.
    func openClient(_ channels: [(String, Int64, Int64, Int64)], receiveMaximum: UInt16) throws {
        var connect = MQTTConnect(
            version: .v5, isCleanStart: false, keepAlive: 30, clientID: "d", userName: "i/u",
            password: Array("session".utf8))
        connect.receiveMaximum = receiveMaximum
        try client(sends: .connect(connect))
        happen(.registered(SessionBench.reply(channels), bindNumber: 1))
        turn()
        _ = try published()
    }

    func subscribe() throws {
        try client(sends: .subscribe(packetID: 1, [.init(filter: "#", qualityOfService: 1)]))
    }

    /// Packet ids and payloads of the `PUBLISH` packets written since it was asked last.
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

    /// Connects with the user bound, opens with these channels as a registration's answer has them.
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
        happen(.registered(SessionBench.reply(channels), bindNumber: bind))
        _ = try written()
    }
}
