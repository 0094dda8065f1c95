import AMQP
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// The HTTP side of the bare chain: sends each push to the writer, and answers when the writer has stored it.
///
/// Cost model: one read and one write of the connection, one record to the writer, one record back. A record that
/// waits shares the body of others; no delay is added for that.
final class BareIngest: Sendable {
    private struct Calls {
        var last: UInt64 = 0
        /// The connections that wait for a reply, by correlation.
        var waiting: [UInt64: any Channel] = [:]
    }

    private let calls = Mutex(Calls())
    private let client: Mutex<AMQPClient?> = Mutex(nil)
    private let configuration: AMQPConfiguration
    private let logger: Logger
    /// The queue of this process's replies.
    private let replies = "bare.replies.\(UInt64.random(in: 0...UInt64.max))"

    init(broker configuration: AMQPConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Serves HTTP on loopback until the process ends.
    func run(port: Int) async throws {
        let client = AMQPClient(
            configuration: configuration, topology: ChainQueue.replies(to: replies),
            consumptions: [AMQPConsumption(queue: replies, prefetch: nil) { self.complete($0.map(\.body)) }],
            events: .chain(onDisconnected: { self.failAll() }), logger: logger)
        self.client.withLock { $0 = client }
        _ = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.configureHTTPServerPipeline(
                        withPipeliningAssistance: false, withErrorHandling: false,
                        withOutboundHeaderValidation: false)
                    try pipeline.addHandler(BareCallHandler { body, channel in self.submit(body, from: channel) })
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        try await client.run()
    }

    /// Sends a push. The connection receives the response later.
    private func submit(_ body: ByteBuffer, from channel: any Channel) {
        guard let push = PushMembers(body), let client = client.withLock({ $0 }) else {
            return Self.answer(channel, oplogID: 0)
        }
        let correlation = calls.withLock { calls in
            calls.last += 1
            calls.waiting[calls.last] = channel
            return calls.last
        }
        let record = PushRecord(
            correlation: correlation, user: push.user, thirdMessageID: push.thirdMessageID, payload: push.payload)
        do throws(AMQPError) {
            try client.send(record.body, on: ChainQueue.pushes.route(replyTo: replies))
        } catch {
            complete([StoredRecord(correlation: correlation, oplogID: 0)])
        }
    }

    private func complete(_ bodies: [[UInt8]]) {
        for body in bodies {
            guard let records = StoredRecord.all(in: body) else {
                logger.error("dropped a reply that could not be decoded")
                continue
            }
            complete(records)
        }
    }

    /// Answers the calls of some replies. Each event loop answers its own in one turn.
    private func complete(_ records: [StoredRecord]) {
        let answers = calls.withLock { calls in
            records.compactMap { record in
                calls.waiting.removeValue(forKey: record.correlation).map { (channel: $0, oplogID: record.oplogID) }
            }
        }
        for part in Dictionary(grouping: answers, by: { ObjectIdentifier($0.channel.eventLoop) }).values {
            part[0].channel.eventLoop.execute {
                for (channel, oplogID) in part { Self.answer(channel, oplogID: oplogID) }
            }
        }
    }

    private func failAll() {
        complete(calls.withLock { $0.waiting.keys.map { StoredRecord(correlation: $0, oplogID: 0) } })
    }

    /// Writes the response in the form of the API, as far as the load generator reads it.
    static func answer(_ channel: any Channel, oplogID: Int64) {
        let body = ByteBuffer(
            string: oplogID > 0
                ? #"{"success":true,"msg":"SUCCESS","oplogId":\#(oplogID)}"#
                : #"{"success":false,"msg":"SYSTEM_ERROR"}"#)
        let headers: HTTPHeaders = [
            "Content-Type": "application/json;charset=UTF-8", "Content-Length": String(body.readableBytes),
        ]
        channel.write(
            HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)),
            promise: nil)
        channel.write(HTTPServerResponsePart.body(.byteBuffer(body)), promise: nil)
        channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
    }
}

/// Collects the body of each call on a connection.
///
/// A connection has one call at a time, as in the load generator. There is no limit for a body.
final class BareCallHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart

    private let submit: (ByteBuffer, any Channel) -> Void
    private var body = ByteBuffer()

    init(submit: @escaping (ByteBuffer, any Channel) -> Void) { self.submit = submit }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head: body = ByteBuffer()
        case .body(var part):
            if body.readableBytes == 0 { body = part } else { body.writeBuffer(&part) }
        case .end: submit(body, context.channel)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
