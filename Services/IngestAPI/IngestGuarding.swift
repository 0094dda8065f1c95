import BackendCalls
import NIOHTTP1
import ServiceKit
import SyncModel

/// Answers in the API's form what the guard of a connection refuses.
struct IngestGuarding: GuardedServer {
    let metrics: IngestMetrics

    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal {
        let code = ResultCode(refusalStatus: Int(status.code)) ?? .badRequest
        let answer: HTTPAnswer = code == .unavailable ? .unavailable(detail) : .refusal(code, detail)
        metrics.answered(answer)
        let requestID = RequestName.make()
        return GuardRefusal(
            headers: answer.headers(requestID: requestID), body: answer.content.body(requestID: requestID))
    }

    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool {
        APICall(path: Substring(head.uri.prefix { $0 != "?" })).map { bytes <= $0.bodyBytes } ?? false
    }
}
