import AMQP
import DeviceProtocol
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import ServerTLS
import SwiftProtobuf
import Synchronization

/// The gateway of the bare chain: sends each stored push to the device of its user, over TLS.
///
/// Cost model: one record from the writer, one frame to the device, and the device's acknowledgement, which ends the
/// chain: nothing is stored for it. A push for a user without a connected device is dropped.
final class BareGateway: Sendable {
    /// A connected device.
    struct Device: Sendable {
        let channel: any Channel
        let bindNumber: UInt32
    }

    /// The Sync ID of all pushes, the default of the load generator.
    private static let bizType = "UCHAT"

    private let devices = Mutex<[String: Device]>([:])
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// Serves devices on loopback until the process ends.
    func run(port: Int, tls: NIOSSLContext, broker: AMQPConfiguration) async throws {
        _ = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: tls))
                    try pipeline.addHandler(ByteToMessageHandler(PacketDecoder.ofDevice))
                    try pipeline.addHandler(BareDeviceHandler(self))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        let client = AMQPClient(
            configuration: broker, topology: ChainQueue.notices.topology,
            consumptions: [
                AMQPConsumption(queue: ChainQueue.notices.rawValue, prefetch: nil) { self.deliver($0.map(\.body)) }
            ], events: .chain(), logger: logger)
        try await client.run()
    }

    /// Makes a device the receiver of its user's pushes.
    func add(_ device: Device, of user: String) { devices.withLock { $0[user] = device } }

    /// Removes a device, unless the user has another one by now.
    func remove(_ channel: any Channel, of user: String) {
        devices.withLock { devices in
            if devices[user]?.channel === channel { devices[user] = nil }
        }
    }

    /// Sends stored pushes to their devices. Each event loop sends its own in one turn.
    func deliver(_ bodies: [[UInt8]]) {
        let notices = bodies.flatMap { body -> [NoticeRecord] in
            guard let notices = NoticeRecord.all(in: body) else {
                logger.error("dropped a body that could not be decoded")
                return []
            }
            return notices
        }
        let sends = devices.withLock { devices in
            notices.compactMap { notice in devices[notice.user].map { (device: $0, notice: notice) } }
        }
        for part in Dictionary(grouping: sends, by: { ObjectIdentifier($0.device.channel.eventLoop) }).values {
            part[0].device.channel.eventLoop.execute {
                for (device, notice) in part {
                    device.channel.write(Self.frame(of: notice, to: device), promise: nil)
                }
                // A device with several pushes gets them in one write to its socket.
                for (device, _) in part { device.channel.flush() }
            }
        }
    }

    private static func frame(of notice: NoticeRecord, to device: Device) -> ByteBuffer {
        let packet = Mss_Device_V1_Packet.with {
            $0.push.batches = [
                .with {
                    $0.bizType = bizType
                    $0.bindNumber = device.bindNumber
                    $0.after = notice.oplogID - 1
                    $0.upto = notice.oplogID
                    $0.entries = [
                        .with {
                            $0.oplogID = notice.oplogID
                            $0.payload = Data(notice.payload)
                        }
                    ]
                }
            ]
        }
        var buffer = ByteBuffer()
        PacketEncoder.encode(packet, into: &buffer)
        return buffer
    }
}

/// A device's connection to the bare chain. It answers what a device of the load generator waits for: `Connect`,
/// reports and heartbeats.
final class BareDeviceHandler: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias OutboundOut = ByteBuffer

    private static let heartbeatSeconds: UInt32 = 60

    private let gateway: BareGateway
    private var user: String?
    private var out = ByteBuffer()

    init(_ gateway: BareGateway) { self.gateway = gateway }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data).body {
        case .connect(let connect): open(connect.bind, context.channel)
        case .confirmReport(let report): answer { $0.confirmRecorded.reportID = report.reportID }
        case .ping(let ping): answer { $0.pong.number = ping.number }
        // An acknowledgement ends the chain.
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard out.readableBytes > 0 else { return }
        context.writeAndFlush(Self.wrapOutboundOut(out), promise: nil)
        out.clear()
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let user { gateway.remove(context.channel, of: user) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func open(_ bind: Mss_Device_V1_Bind, _ channel: any Channel) {
        user = bind.userID
        gateway.add(BareGateway.Device(channel: channel, bindNumber: bind.bindNumber), of: bind.userID)
        answer {
            $0.connected.connectionID = "bare"
            $0.connected.heartbeatSeconds = Self.heartbeatSeconds
            $0.connected.maxFrameBytes = UInt32(DeviceProtocolLimits.toGatewayBytes)
        }
        answer {
            $0.bindResult.bindNumber = bind.bindNumber
            $0.bindResult.accepted = true
        }
        answer { $0.caughtUp.bindNumber = bind.bindNumber }
    }

    private func answer(_ fill: (inout Mss_Device_V1_Packet) -> Void) {
        PacketEncoder.encode(Mss_Device_V1_Packet.with { fill(&$0) }, into: &out)
    }
}
