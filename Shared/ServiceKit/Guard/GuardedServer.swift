package import NIOHTTP1

/// What a server tells the guard of its connections, which answers in the server's own form what never reaches it.
package protocol GuardedServer: Sendable {
    /// Makes the answer to a request that is not served; it will be sent.
    ///
    /// - Parameters:
    ///   - status: 503 for what may be repeated later, any other for what the caller has to correct.
    ///   - detail: a sentence for the caller, with what to do.
    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal

    /// Whether the body that a head announces is one to go on for (`Expect: 100-continue`).
    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool
}

/// The guard's answer, beside status, length and connection.
package struct GuardRefusal: Sendable {
    package let headers: [(String, String)]
    package let body: String

    package init(headers: [(String, String)], body: String) {
        self.headers = headers
        self.body = body
    }
}
