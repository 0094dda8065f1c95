import NIOHTTP1
import SyncModel

/// One answer of the API, whatever the way in which it goes out.
struct APIAnswer: Hashable, Sendable {
    /// 200 for every business result (spec H1).
    var status: HTTPResponseStatus = .ok
    var code: ResultCode
    var oplogID: OplogID?
    /// A sentence for the caller; nil when the code says it all.
    var detail: String?
    /// Of a batch: the answers to its items, in their order.
    var results: [APIAnswer]?
    /// Of a trace or a dry run: how it stands with its receivers.
    var trace: TraceAnswer?
    /// Seconds after which a repeat makes sense.
    var retryAfterSeconds: Int?
    /// How the caller stands with its limit; nil: it has none.
    var rate: RateNote?
    /// The methods that the path has; only with 405.
    var allow: String?
    /// Whether the connection ends with this answer, because the rest of the request is not read.
    var closesConnection = false

    /// A business result.
    static func result(_ code: ResultCode, oplogID: OplogID? = nil, detail: String? = nil) -> APIAnswer {
        APIAnswer(code: code, oplogID: oplogID, detail: detail)
    }

    /// No business result: nothing was attempted, and the rest of the request is left unread.
    static func refusal(_ status: HTTPResponseStatus, _ detail: String, allow: String? = nil) -> APIAnswer {
        APIAnswer(status: status, code: .systemError, detail: detail, allow: allow, closesConnection: true)
    }

    /// Nothing was attempted because this process or what it needs cannot work now; a little jitter spreads repeats.
    static func unavailable(_ detail: String) -> APIAnswer {
        APIAnswer(
            status: .serviceUnavailable, code: .systemError, detail: detail, retryAfterSeconds: Int.random(in: 1...3))
    }

    /// Nothing was attempted because of who calls; the request was read, so the connection goes on.
    static func denied(_ status: HTTPResponseStatus, _ detail: String) -> APIAnswer {
        APIAnswer(status: status, code: .systemError, detail: detail)
    }

    /// Whether the push that this answers is stored by this call, as far as is known.
    var mayBeStored: Bool { status == .ok && [.success, .notOnline, .systemError].contains(code) }

    /// The headers beside length, date and connection.
    func headers(requestID: String) -> [(name: String, value: String)] {
        var headers = [("Content-Type", "application/json;charset=UTF-8"), ("X-Request-Id", requestID)]
        if let retryAfterSeconds { headers.append(("Retry-After", String(retryAfterSeconds))) }
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

    /// The JSON text of spec H1.
    func body(requestID: String) -> String {
        var text = "{"
        appendMembers(to: &text)
        if let results {
            text += ",\"results\":["
            for (index, result) in results.enumerated() {
                text += index == 0 ? "{" : ",{"
                result.appendMembers(to: &text)
                text += "}"
            }
            text += "]"
        }
        text += ",\"requestId\":"
        text.appendJSONString(requestID)
        return text + "}"
    }

    private func appendMembers(to text: inout String) {
        let isSuccess = status == .ok && code.isSuccess
        text += "\"success\":\(isSuccess),\"msg\":\"\(code.rawValue)\""
        if status != .ok { text += ",\"attempted\":false" }
        if let oplogID { text += ",\"oplogId\":\(oplogID.value)" }
        if let detail {
            text += ",\"detail\":"
            text.appendJSONString(detail)
        }
        if let trace { text += trace.json }
    }
}
