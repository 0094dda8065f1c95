import NIOCore
import NIOHTTP1

/// An answer as it is written.
struct HTTPResponse: Sendable {
    let head: HTTPResponseHead
    /// Nil: the answer to a HEAD request.
    let body: ByteBuffer?
}

extension Channel {
    /// Writes an answer to the request that is open.
    func send(_ response: HTTPResponse) {
        write(HTTPServerResponsePart.head(response.head), promise: nil)
        if let body = response.body { write(HTTPServerResponsePart.body(.byteBuffer(body)), promise: nil) }
        writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
    }
}
