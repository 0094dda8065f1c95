import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit

/// One connection of the API: its handlers, and the one task that answers its requests.
///
/// Uses NIO's HTTP/1 handlers directly: Hummingbird's channel passes every part of a request through an asynchronous
/// sequence, which costs more than all other work on the request.
struct IngestChannel: ServerChildChannel {
    /// A connection and its complete requests.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let requests: AsyncStream<IngestRequest>
    }

    let responder: IngestResponder
    let limits: ConnectionLimits
    /// Makes the guard of a connection.
    let guardInstaller: @Sendable () -> GuardInstaller

    func setup(channel: any Channel, logger _: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            var decoding = NIOHTTPDecoderLimitConfiguration()
            decoding.maxHeaderFieldSize = limits.headBytes
            decoding.maxHeaderListSize = limits.headBytes
            decoding.maxHeaderFieldCount = limits.headerFields
            let (requests, complete) = AsyncStream.makeStream(of: IngestRequest.self)
            let pipeline = channel.pipeline.syncOperations
            // The guard adds the pipelining handler and answers errors. The responder builds all response headers, so
            // they need no validation.
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoding)
            try pipeline.addHandler(guardInstaller())
            try pipeline.addHandler(RequestReader(responder: responder, complete: complete))
            return Value(channel: channel, requests: requests)
        }
    }

    func handle(value: Value, logger _: Logger) async {
        let channel = value.channel
        await withTaskCancellationHandler {
            await withTaskExecutorPreference(EventLoopExecutor(channel.eventLoop)) {
                for await request in value.requests { channel.send(await answer(request)) }
            }
            // A half-closed caller still receives the pending response.
            channel.close(mode: .output, promise: nil)
            try? await channel.closeFuture.get()
        } onCancel: {
            channel.close(mode: .input, promise: nil)
        }
    }

    private func answer(_ request: IngestRequest) async -> HTTPResponse {
        // Parsing a batch of up to 16 MiB would block the other connections of this event loop.
        guard request.call == .batch else { return await responder.respond(to: request) }
        return await withTaskExecutorPreference(globalConcurrentExecutor) { await responder.respond(to: request) }
    }
}

/// Runs the tasks of a connection on the connection's event loop, so that a request needs no thread switch between the
/// socket and the bus.
private final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
