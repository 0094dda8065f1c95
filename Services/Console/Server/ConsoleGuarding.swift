import Foundation
import Logging
import NIOHTTP1
import ServiceKit

/// Answers in the console's form what the guard of a connection refuses (reliability SEC3).
struct ConsoleGuarding: GuardedServer {
    let logger: Logger

    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal {
        let requestID = UUID().uuidString.lowercased()
        logger.info(
            "refused before it was read",
            metadata: ["request_id": "\(requestID)", "status": "\(status.code)", "detail": "\(detail)"])
        let problem = Problem(code: "BAD_REQUEST", detail: detail, field: nil, requestId: requestID)
        let body = (try? JSONEncoder().encode(problem)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        var headers =
            SecurityHeaders.all + [
                SecurityHeaders.notKept, ("Content-Type", "application/json; charset=utf-8"),
                ("X-Request-Id", requestID),
            ]
        if status == .serviceUnavailable { headers.append(("Retry-After", "2")) }
        return GuardRefusal(headers: headers, body: body)
    }

    /// Programs that ask first whether they may send their body are told to go on while it is no longer than a form.
    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool { bytes <= ConsoleResponder.bodyBytes }
}
