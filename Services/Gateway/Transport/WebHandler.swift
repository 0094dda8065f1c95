import JavaScriptClient
import NIOCore
import NIOHTTP1

/// Answers the single request of an HTTP connection and closes it, or passes the request on to become a WebSocket.
final class WebHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case awaitingRequest
        case passing
        case answered
    }

    private static let safetyFields: HTTPHeaders = [
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            + "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
        "Referrer-Policy": "no-referrer",
        "Connection": "close",
    ]

    private let servesFiles: Bool
    private var state = State.awaitingRequest

    init(servesFiles: Bool) { self.servesFiles = servesFiles }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (state, Self.unwrapInboundIn(data)) {
        case (.passing, _):
            context.fireChannelRead(data)
        case (.awaitingRequest, .head(let head)):
            let answer = WebAnswer(to: head, servesFiles: servesFiles)
            if case .webSocket = answer {
                state = .passing
                context.fireChannelRead(data)
            } else {
                write(answer, withBody: head.method != .HEAD, context)
            }
        default:
            break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError, state == .awaitingRequest else {
            context.close(promise: nil)
            return
        }
        let isTooLarge = error == .headerOverflow
        write(
            .refusal(
                isTooLarge ? .requestHeaderFieldsTooLarge : .badRequest,
                isTooLarge ? "The head is too large." : "The request is not valid HTTP/1.1."),
            withBody: true, context)
    }

    private func write(_ answer: WebAnswer, withBody: Bool, _ context: ChannelHandlerContext) {
        state = .answered
        var fields = Self.safetyFields
        let (status, content) = Self.parts(of: answer, into: &fields)
        if let content { fields.add(name: "Content-Length", value: String(content.readableBytes)) }
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: fields)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if withBody, let content { context.write(wrapOutboundOut(.body(.byteBuffer(content))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }

    private static func parts(
        of answer: WebAnswer, into fields: inout HTTPHeaders
    ) -> (HTTPResponseStatus, ByteBuffer?) {
        switch answer {
        case .webSocket:
            return (.switchingProtocols, nil)
        case .file(let file), .unchanged(let file):
            fields.add(name: "Cache-Control", value: "no-cache")
            fields.add(name: "ETag", value: file.tag)
            if file.isForEveryone { fields.add(name: "Access-Control-Allow-Origin", value: "*") }
            if case .unchanged = answer { return (.notModified, nil) }
            fields.add(name: "Content-Type", value: file.contentType)
            return (.ok, file.content)
        case .refusal(let status, let words, let more):
            fields.add(contentsOf: more)
            fields.add(name: "Content-Type", value: "text/plain; charset=utf-8")
            return (status, ByteBuffer(string: words + "\n"))
        }
    }
}
