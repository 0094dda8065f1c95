import BackendCalls
import NIOHTTP1
import SyncModel

/// An answer of the API as HTTP carries it.
struct HTTPAnswer: Hashable, Sendable {
    var content: APIAnswer
    /// How the caller stands with its limit; nil: it has none.
    var rate: RateNote?
    /// The methods that the path has; only with 405.
    var allow: String?
    /// Whether the connection ends with this answer, because the rest of the request is not read.
    var closesConnection = false

    /// 200 for every business result (spec H1); a refusal has its code's.
    var status: HTTPResponseStatus { HTTPResponseStatus(statusCode: content.code.status) }

    /// Carries what became of a call.
    init(_ content: APIAnswer) {
        self.content = content
        rate = content.reachedLimit
    }

    /// No business result: nothing was attempted, and the rest of the request is left unread.
    static func refusal(_ code: ResultCode, _ detail: String, allow: String? = nil) -> HTTPAnswer {
        var answer = denied(code, detail)
        answer.allow = allow
        answer.closesConnection = true
        return answer
    }

    /// Nothing was attempted because of the caller; the request was read, so the connection goes on.
    static func denied(_ code: ResultCode, _ detail: String) -> HTTPAnswer {
        HTTPAnswer(.result(code, detail: detail))
    }

    /// Nothing was attempted because this process or what it needs cannot work now.
    static func unavailable(_ detail: String) -> HTTPAnswer { HTTPAnswer(.unavailable(detail)) }

    /// The headers beside length, date and connection.
    func headers(requestID: String) -> [(name: String, value: String)] {
        var headers = [("Content-Type", "application/json;charset=UTF-8"), ("X-Request-Id", requestID)]
        if let seconds = content.retryAfterSeconds { headers.append(("Retry-After", String(seconds))) }
        if let allow { headers.append(("Allow", allow)) }
        // A 401 must name how to do better (RFC 9110 §11.6.1).
        if content.code == .unauthorized { headers.append(("WWW-Authenticate", "MSS-Signature-V1")) }
        if let rate {
            headers.append(("RateLimit-Limit", String(rate.limit)))
            headers.append(("RateLimit-Remaining", String(rate.remaining)))
            headers.append(("RateLimit-Reset", String(rate.resetSeconds)))
        }
        return headers
    }
}
