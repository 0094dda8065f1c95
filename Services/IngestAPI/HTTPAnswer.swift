import BackendCalls
import NIOHTTP1

/// An answer of the API as HTTP carries it.
struct HTTPAnswer: Hashable, Sendable {
    /// 200 for every business result (spec H1).
    let status: HTTPResponseStatus
    var content: APIAnswer
    /// How the caller stands with its limit; nil: it has none.
    var rate: RateNote?
    /// The methods that the path has; only with 405.
    var allow: String?
    /// Whether the connection ends with this answer, because the rest of the request is not read.
    var closesConnection = false

    /// Carries what became of a call.
    init(_ content: APIAnswer) {
        self.content = content
        rate = content.reachedLimit
        status = content.isAttempted ? .ok : rate == nil ? .serviceUnavailable : .tooManyRequests
    }

    private init(_ status: HTTPResponseStatus, _ detail: String) {
        self.status = status
        content = .notAttempted(detail)
    }

    /// No business result: nothing was attempted, and the rest of the request is left unread.
    static func refusal(_ status: HTTPResponseStatus, _ detail: String, allow: String? = nil) -> HTTPAnswer {
        var answer = HTTPAnswer(status, detail)
        answer.allow = allow
        answer.closesConnection = true
        return answer
    }

    /// Nothing was attempted because of who calls; the request was read, so the connection goes on.
    static func denied(_ status: HTTPResponseStatus, _ detail: String) -> HTTPAnswer { HTTPAnswer(status, detail) }

    /// Nothing was attempted because this process or what it needs cannot work now.
    static func unavailable(_ detail: String) -> HTTPAnswer { HTTPAnswer(.unavailable(detail)) }

    /// The headers beside length, date and connection.
    func headers(requestID: String) -> [(name: String, value: String)] {
        var headers = [("Content-Type", "application/json;charset=UTF-8"), ("X-Request-Id", requestID)]
        if let seconds = content.retryAfterSeconds { headers.append(("Retry-After", String(seconds))) }
        if let allow { headers.append(("Allow", allow)) }
        // A 401 must name how to do better (RFC 9110 §11.6.1).
        if status == .unauthorized { headers.append(("WWW-Authenticate", "MSS-Signature-V1")) }
        if let rate {
            headers.append(("RateLimit-Limit", String(rate.limit)))
            headers.append(("RateLimit-Remaining", String(rate.remaining)))
            headers.append(("RateLimit-Reset", String(rate.resetSeconds)))
        }
        return headers
    }
}
