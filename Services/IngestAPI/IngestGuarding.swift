import BackendCalls
import NIOHTTP1
import ServiceKit

/// Answers in the API's form what the guard of a connection refuses.
struct IngestGuarding: GuardedServer {
    let metrics: IngestMetrics

    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal {
        let answer: HTTPAnswer = status == .serviceUnavailable ? .unavailable(detail) : .refusal(status, detail)
        metrics.answered(answer)
        let requestID = RequestName.make()
        return GuardRefusal(
            headers: answer.headers(requestID: requestID), body: answer.content.body(requestID: requestID))
    }

    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool {
        APICall(path: Substring(head.uri.prefix { $0 != "?" })).map { bytes <= $0.bodyBytes } ?? false
    }
}
