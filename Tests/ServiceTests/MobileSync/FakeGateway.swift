import DeviceProtocol
import Foundation
import NIOCore
import NIOPosix
import SwiftProtobuf
import TestSupport

/// A gateway without TLS on a port of its own. The test decides every frame.
///
/// When the protocol changes, first change the answers of `greet` and the frames that a test sends.
final class FakeGateway: Sendable {
    /// The connection of one client.
    final class Session: Sendable {
        private let channel: any Channel
        private let frames: FrameQueue

        fileprivate init(_ channel: any Channel, _ frames: FrameQueue) {
            self.channel = channel
            self.frames = frames
        }

        /// Whether the client has not closed the connection.
        fileprivate var isOpen: Bool { channel.isActive }

        /// The client's next frame.
        ///
        /// - Throws: `Failure` when no frame arrives in time, or the client has closed the connection.
        func next() async throws -> Mss_Device_V1_Packet {
            let packet = try await inTime(.seconds(30), "the client's next frame") { [frames] in
                try await frames.next()
            }
            return try requireValue(packet, "the client hung up")
        }

        /// The next frame that carries a stored position; others are skipped.
        func nextStored() async throws -> [Mss_Device_V1_StoredUpto] { try await nextAck().channels }

        /// The next acknowledgement of positions, or of re-reads; others are skipped.
        func nextAck() async throws -> Mss_Device_V1_StoredAck {
            while true { if case .storedAck(let ack)? = try await next().body { return ack } }
        }

        /// The next report of confirmations; others are skipped.
        func nextReport() async throws -> Mss_Device_V1_ConfirmReport {
            while true { if case .confirmReport(let report)? = try await next().body { return report } }
        }

        /// The next bind after the Connect; other frames are skipped.
        func nextBind() async throws -> Mss_Device_V1_Bind {
            while true { if case .bind(let bind)? = try await next().body { return bind } }
        }

        /// The next request for history; other frames are skipped.
        func nextRequest() async throws -> Mss_Device_V1_HistoryRequest {
            while true { if case .historyRequest(let request)? = try await next().body { return request } }
        }

        /// The next frame for which the closure has a value; others are skipped.
        func next<Value>(_ value: (Mss_Device_V1_Packet) -> Value?) async throws -> Value {
            while true { if let found = value(try await next()) { return found } }
        }

        /// Answers a request about a user channel like a server that has these ids.
        func answer(_ request: Mss_Device_V1_HistoryRequest, holding ids: some Sequence<Int64>) {
            let ids = ids.sorted()
            let range = ids.filter { $0 > request.after && (request.before == 0 || $0 < request.before) }
            let ordered = request.oldestFirst ? range : range.reversed()
            let entries = ordered.prefix(Int(request.count))
            send(
                .with {
                    $0.historyPage.requestNumber = request.requestNumber
                    $0.historyPage.bindNumber = request.bindNumber
                    $0.historyPage.entries = entries.map { id in
                        .with {
                            $0.oplogID = id
                            $0.payload = .init("\(id)".utf8)
                        }
                    }
                    $0.historyPage.more = entries.count < range.count
                    $0.historyPage.next = entries.last ?? 0
                    $0.historyPage.head = ids.last ?? 0
                })
        }

        /// Records reports until one reports a dead letter. Returns all reported resends.
        func recordResends() async throws -> [Mss_Device_V1_ResentOplog] {
            var resent: [Mss_Device_V1_ResentOplog] = []
            while !resent.contains(where: \.dead) {
                let report = try await nextReport()
                resent += report.resent
                send(.with { $0.confirmRecorded.reportID = report.reportID })
            }
            return resent
        }

        /// Waits until the client has closed the connection.
        func ended() async throws {
            while try await frames.next() != nil {}
        }

        func send(_ packet: Mss_Device_V1_Packet) {
            var buffer = ByteBuffer()
            PacketEncoder.encode(packet, into: &buffer)
            channel.writeAndFlush(buffer, promise: nil)
        }

        /// Sends raw bytes.
        func sendRaw(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

        /// Receives the Connect, answers it, accepts the bind, and returns the Connect.
        ///
        /// - Parameters:
        ///   - firstResend: in milliseconds. The default is longer than a test on a slow machine.
        ///   - heartbeat: in seconds. The default is as long, because pings are not answered.
        func greet(firstResend: UInt32 = 600_000, heartbeat: UInt32 = 600) async throws -> Mss_Device_V1_Connect {
            guard case .connect(let connect)? = try await next().body else { throw Failure("no Connect") }
            send(
                .with {
                    $0.connected.heartbeatSeconds = heartbeat
                    $0.connected.firstResendMs = firstResend
                })
            if connect.hasBind { accept(connect.bind.bindNumber) }
            return connect
        }

        func accept(_ bindNumber: UInt32) {
            send(
                .with {
                    $0.bindResult.bindNumber = bindNumber
                    $0.bindResult.accepted = true
                })
        }

        /// Pushes ids of a user channel. The payload of each oplog is its id.
        ///
        /// - Parameters:
        ///   - recalling: the ids that are tombstones, with the recalled ids.
        ///   - padding: spaces after the id in a payload, in bytes.
        ///   - conversation: empty: none.
        func push(
            _ ids: [Int64], after: Int64, upto: Int64, bind: UInt32 = 1, bizType: String = "B",
            recalling: [Int64: Int64] = [:], reread: UInt64 = 0, passedOver: Int64 = 0, padding: Int = 0,
            conversation: String = ""
        ) {
            let spaces = String(repeating: " ", count: padding)
            let batch = Mss_Device_V1_ChannelBatch.with {
                $0.bizType = bizType
                $0.bindNumber = bind
                $0.after = after
                $0.upto = upto
                $0.reread = reread
                $0.passedOverUpto = passedOver
                $0.entries = ids.map { id in
                    .with {
                        $0.oplogID = id
                        $0.recalls = recalling[id] ?? 0
                        $0.conversation = conversation
                        if $0.recalls == 0 { $0.payload = .init("\(id)\(spaces)".utf8) }
                    }
                }
            }
            send(.with { $0.push.batches = [batch] })
        }

        /// Closes the connection without a Close frame.
        func cut() { channel.close(promise: nil) }
    }

    private let listener: any Channel
    private let sessions: AsyncStream<Session>

    private init(_ listener: any Channel, _ sessions: AsyncStream<Session>) {
        self.listener = listener
        self.sessions = sessions
    }

    var port: Int { listener.localAddress?.port ?? 0 }

    /// Runs the body with a gateway and a path for a client's store.
    static func withStore(_ body: (FakeGateway, URL) async throws -> Void) async throws {
        let store = URL(filePath: NSTemporaryDirectory()).appending(path: "client-\(UUID().uuidString).sqlite")
        defer {
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: store.path + suffix) }
        }
        try await with { try await body($0, store) }
    }

    /// Runs a gateway while the body runs.
    static func with(_ body: (FakeGateway) async throws -> Void) async throws {
        let (sessions, accepted) = AsyncStream.makeStream(of: Session.self)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let frames = FrameQueue()
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(
                        ByteToMessageHandler(PacketDecoder.ofDevice))
                    try pipeline.addHandler(FrameHandler(frames) { accepted.yield(Session(channel, frames)) })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let gateway = FakeGateway(listener, sessions)
        do {
            try await body(gateway)
        } catch {
            try? await listener.close()
            throw error
        }
        try await listener.close()
    }

    /// Waits for the next client. On a busy machine a client gives up before the test sees it, and connects again.
    func accept() async throws -> Session {
        try await inTime(.seconds(30), "a client that connects") { [sessions] in
            for await session in sessions where session.isOpen { return session }
            throw Failure("nobody connected")
        }
    }
}

/// The frames of one client in order, then nil.
private final class FrameQueue: Sendable {
    private let frames: AsyncStream<Mss_Device_V1_Packet>
    let arrived: AsyncStream<Mss_Device_V1_Packet>.Continuation

    init() { (frames, arrived) = AsyncStream.makeStream() }

    func next() async throws -> Mss_Device_V1_Packet? {
        for await frame in frames { return frame }
        return nil
    }
}

private final class FrameHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = Mss_Device_V1_Packet
    private let frames: FrameQueue
    private let opened: @Sendable () -> Void

    init(_ frames: FrameQueue, opened: @escaping @Sendable () -> Void) {
        self.frames = frames
        self.opened = opened
    }

    func channelActive(context: ChannelHandlerContext) { opened() }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { frames.arrived.yield(unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { frames.arrived.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
