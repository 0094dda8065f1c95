import BackendCalls
import NIOCore
import NIOHTTP1
import SyncModel

/// A response of the API, with its HTTP status and headers.
struct HTTPAnswer: Hashable, Sendable {
    var content: APIAnswer
    /// The caller's limit; nil: the caller has none.
    var rate: RateLimitStatus?
    /// The methods that the path accepts; only with 405.
    var allow: String?
    /// Whether the connection closes after this response, because the rest of the request is not read.
    var closesConnection = false

    /// 200 for every business result (H1); a refusal has the status of its code.
    var status: HTTPResponseStatus { HTTPResponseStatus(statusCode: content.code.status) }

    /// Wraps the result of a call.
    init(_ content: APIAnswer) {
        self.content = content
        rate = content.reachedLimit
    }

    /// A refusal that closes the connection: nothing was attempted, and the rest of the request is not read.
    static func refusal(_ code: ResultCode, _ detail: String, allow: String? = nil) -> HTTPAnswer {
        var answer = denied(code, detail)
        answer.allow = allow
        answer.closesConnection = true
        return answer
    }

    /// A refusal after the whole request was read: nothing was attempted, and the connection stays open.
    static func denied(_ code: ResultCode, _ detail: String) -> HTTPAnswer {
        HTTPAnswer(.result(code, detail: detail))
    }

    /// Nothing was attempted, because this process or its store cannot work now.
    static func unavailable(_ detail: String) -> HTTPAnswer { HTTPAnswer(.unavailable(detail)) }

    /// The headers, without length, date and connection.
    func headers(requestID: String) -> [(name: String, value: String)] {
        var headers = [("Content-Type", "application/json;charset=UTF-8"), ("X-Request-Id", requestID)]
        if let seconds = content.retryAfterSeconds { headers.append(("Retry-After", String(seconds))) }
        if let allow { headers.append(("Allow", allow)) }
        // A 401 must name an authentication scheme (RFC 9110 §11.6.1).
        if content.code == .unauthorized { headers.append(("WWW-Authenticate", "MSS-Signature-V1")) }
        if let rate {
            headers.append(("RateLimit-Limit", String(rate.limit)))
            headers.append(("RateLimit-Remaining", String(rate.remaining)))
            headers.append(("RateLimit-Reset", String(rate.resetSeconds)))
        }
        return headers
    }
}

/// A response, ready to be written.
struct HTTPResponse: Sendable {
    let head: HTTPResponseHead
    /// A nil value means: the response to a HEAD request.
    let body: ByteBuffer?
}

extension Channel {
    /// Writes the response to the current request.
    func send(_ response: HTTPResponse) {
        write(HTTPServerResponsePart.head(response.head), promise: nil)
        if let body = response.body { write(HTTPServerResponsePart.body(.byteBuffer(body)), promise: nil) }
        writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
    }
}

/// A refusal before the call is attempted.
struct EarlyRefusal: Error, Sendable {
    let answer: HTTPAnswer
}
