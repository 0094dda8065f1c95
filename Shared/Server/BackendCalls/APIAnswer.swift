import ServiceKit
package import SyncModel

/// The response to a backend's call, independent of its transport.
package struct APIAnswer: Hashable, Sendable {
    package var code: ResultCode
    package var oplogID: OplogID?
    /// A sentence for the caller; nil when the code is sufficient.
    package var detail: String?
    /// For a batch: the responses to its items, in order.
    package var results: [APIAnswer]?
    /// For a trace or dry run: the states of the receivers.
    package var trace: TraceAnswer?
    /// Seconds after which a repeat is useful.
    package var retryAfterSeconds: Int?
    /// The limit that refused the call; nil for any other result.
    package var reachedLimit: RateLimitStatus?

    /// A response with a code and an optional sentence.
    package static func result(_ code: ResultCode, oplogID: OplogID? = nil, detail: String? = nil) -> APIAnswer {
        APIAnswer(code: code, oplogID: oplogID, detail: detail)
    }

    /// Nothing was attempted, because this process or a dependency is unavailable. A random pause spreads the repeats.
    package static func unavailable(_ detail: String) -> APIAnswer {
        APIAnswer(code: .unavailable, detail: detail, retryAfterSeconds: Int.random(in: 1...3))
    }

    /// Nothing was attempted, because the caller has reached a limit.
    package static func limited(by limit: RateLimitStatus, _ detail: String) -> APIAnswer {
        APIAnswer(
            code: .rateLimited, detail: detail, retryAfterSeconds: limit.resetSeconds, reachedLimit: limit)
    }

    /// Whether it is a business result; false when nothing was attempted (H1).
    package var isAttempted: Bool { code.isAttempted }

    /// Whether a repeat of the same call can have another result. A batch is retryable if any item is.
    package var isRetryable: Bool { code.isRetryable || results?.contains(where: \.isRetryable) == true }

    /// Whether this call has stored the push, or may have.
    package var mayBeStored: Bool { [.success, .notOnline, .systemError].contains(code) }

    /// The response body of H1.
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

/// A caller's use of a limit, for the RateLimit headers of a response.
package struct RateLimitStatus: Hashable, Sendable {
    /// Calls or pushes in total.
    package var limit: Int
    package var remaining: Int
    /// Seconds until the full limit is available again.
    package var resetSeconds: Int

    package init(limit: Int, remaining: Int, resetSeconds: Int) {
        self.limit = limit
        self.remaining = remaining
        self.resetSeconds = resetSeconds
    }
}
