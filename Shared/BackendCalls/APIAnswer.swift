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
    /// Seconds after which a repeat makes sense.
    package var retryAfterSeconds: Int?
    /// The limit because of which nothing was attempted; nil: it was not because of one.
    package var reachedLimit: RateNote?

    /// An answer that its code and a sentence say.
    package static func result(_ code: ResultCode, oplogID: OplogID? = nil, detail: String? = nil) -> APIAnswer {
        APIAnswer(code: code, oplogID: oplogID, detail: detail)
    }

    /// Nothing was attempted because this process or what it needs cannot work now; a little jitter spreads repeats.
    package static func unavailable(_ detail: String) -> APIAnswer {
        APIAnswer(code: .unavailable, detail: detail, retryAfterSeconds: Int.random(in: 1...3))
    }

    /// Nothing was attempted because the caller has had what its limit gives it.
    package static func limited(by limit: RateNote, _ detail: String) -> APIAnswer {
        APIAnswer(
            code: .rateLimited, detail: detail, retryAfterSeconds: limit.resetSeconds, reachedLimit: limit)
    }

    /// Whether it is a business result; otherwise nothing was attempted (spec H1).
    package var isAttempted: Bool { code.isAttempted }

    /// Whether the same call, repeated, can have another answer. A batch is repeated for any of its items.
    package var isRetryable: Bool { code.isRetryable || results?.contains(where: \.isRetryable) == true }

    /// Whether the push that this answers is stored by this call, as far as is known.
    package var mayBeStored: Bool { [.success, .notOnline, .systemError].contains(code) }

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
        text += "\"success\":\(code.isSuccess),\"msg\":\"\(code.rawValue)\",\"retryable\":\(isRetryable)"
        if !isAttempted { text += ",\"attempted\":false" }
        if let oplogID { text += ",\"oplogId\":\(oplogID.value)" }
        if let detail {
            text += ",\"detail\":"
            text.appendJSONString(detail)
        }
        if let trace { text += trace.json }
    }
}
