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

    /// Nothing was attempted because this app has sent too much lately.
    static var tooManyPushes: APIAnswer {
        var answer = unavailable(
            "This app sends more pushes than it may; repeat the call after the time in Retry-After, and send slower.")
        answer.status = .tooManyRequests
        return answer
    }

    /// The headers beside length, date and connection.
    func headers(requestID: String) -> [(name: String, value: String)] {
        var headers = [("Content-Type", "application/json;charset=UTF-8"), ("X-Request-Id", requestID)]
        if let retryAfterSeconds { headers.append(("Retry-After", String(retryAfterSeconds))) }
        if let allow { headers.append(("Allow", allow)) }
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
