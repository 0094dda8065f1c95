package import SyncModel

/// One answer to a backend's call, whatever the way in which it goes out.
package struct APIAnswer: Hashable, Sendable {
    package var code: ResultCode
    package var oplogID: OplogID?
    /// A sentence for the caller; nil when the code says it all.
    package var detail: String?
    /// Of a batch: the answers to its items, in their order.
    package var results: [APIAnswer]?
    /// Of a trace or a dry run: how it stands with its receivers.
    package var trace: TraceAnswer?
    /// Whether it is a business result; otherwise nothing was attempted (spec H1).
    package var isAttempted = true
    /// Seconds after which a repeat makes sense.
    package var retryAfterSeconds: Int?
    /// The limit because of which nothing was attempted; nil: it was not because of one.
    package var reachedLimit: RateNote?

    /// A business result.
    package static func result(_ code: ResultCode, oplogID: OplogID? = nil, detail: String? = nil) -> APIAnswer {
        APIAnswer(code: code, oplogID: oplogID, detail: detail)
    }

    /// No business result: nothing was attempted.
    package static func notAttempted(_ detail: String) -> APIAnswer {
        APIAnswer(code: .systemError, detail: detail, isAttempted: false)
    }

    /// Nothing was attempted because this process or what it needs cannot work now; a little jitter spreads repeats.
    package static func unavailable(_ detail: String) -> APIAnswer {
        var answer = notAttempted(detail)
        answer.retryAfterSeconds = Int.random(in: 1...3)
        return answer
    }

    /// Nothing was attempted because the caller has had what its limit gives it.
    package static func limited(by limit: RateNote, _ detail: String) -> APIAnswer {
        var answer = notAttempted(detail)
        answer.retryAfterSeconds = limit.resetSeconds
        answer.reachedLimit = limit
        return answer
    }

    /// Whether the push that this answers is stored by this call, as far as is known.
    package var mayBeStored: Bool { isAttempted && [.success, .notOnline, .systemError].contains(code) }

    /// The JSON text of spec H1.
    package func body(requestID: String) -> String {
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
        text += "\"success\":\(isAttempted && code.isSuccess),\"msg\":\"\(code.rawValue)\""
        if !isAttempted { text += ",\"attempted\":false" }
        if let oplogID { text += ",\"oplogId\":\(oplogID.value)" }
        if let detail {
            text += ",\"detail\":"
            text.appendJSONString(detail)
        }
        if let trace { text += trace.json }
    }
}
