import BusMessages
import DeviceProtocol
import NIOCore
import NIOEmbedded
import SwiftProtobuf
import SyncModel

@testable import Gateway
@testable import ServiceKit

/// One device connection without a socket: its handler, on an event loop that the test turns, in a gateway without a
/// broker whose lease and control data the test sets.
final class HandlerBench {
    let core: GatewayCore
    let lease: GatewayLease
    private let channel = EmbeddedChannel()
    private let control: ControlConnection
    private let handler: DeviceHandler
    private var version: Int64 = 0

    /// A lease is held, for an hour.
    init(_ configurations: [SyncConfiguration]) throws {
        let context = try GatewaySocketFixture.context()
        control = ControlConnection(context, keysFor: .device)
        core = GatewayCore(context, limits: SessionLimits(), admission: AdmissionLimits(), control: control)
        lease = core.makeLease()
        handler = DeviceHandler(gateway: core, number: 1, acceptedAt: .now)
        lease.take(.with { $0.epoch = 1 }, askedAt: .now + .seconds(3_600))
        rule(configurations)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(handler)
    }

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
