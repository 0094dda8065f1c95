import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit

/// One connection of the API: its handlers, and the one task that answers its requests.
///
/// HTTP/1 stands directly on NIO here: Hummingbird's own takes every part of a request through an asynchronous sequence
/// and back, which costs more than all that is done with the request.
struct IngestChannel: ServerChildChannel {
    /// A connection with the requests that are to be answered.
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
            let (requests, whole) = AsyncStream.makeStream(of: IngestRequest.self)
            let pipeline = channel.pipeline.syncOperations
            // The guard adds the pipeline handler, and answers errors; headers of answers are made here alone.
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoding)
            try pipeline.addHandler(guardInstaller())
            try pipeline.addHandler(RequestReader(responder: responder, whole: whole))
            return Value(channel: channel, requests: requests)
        }
    }

    func handle(value: Value, logger _: Logger) async {
        let channel = value.channel
        await withTaskCancellationHandler {
            await withTaskExecutorPreference(EventLoopExecutor(channel.eventLoop)) {
                for await request in value.requests { channel.send(await answer(request)) }
            }
            // Who has sent all and waits for an answer still gets it.
            channel.close(mode: .output, promise: nil)
            try? await channel.closeFuture.get()
        } onCancel: {
            channel.close(mode: .input, promise: nil)
        }
    }

    private func answer(_ request: IngestRequest) async -> HTTPResponse {
        // A batch is up to 16 MiB to read: too long for a thread that other connections wait for.
        guard request.call == .batch else { return await responder.respond(to: request) }
        return await withTaskExecutorPreference(globalConcurrentExecutor) { await responder.respond(to: request) }
    }
}
