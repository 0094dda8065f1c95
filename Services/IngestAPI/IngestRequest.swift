import NIOHTTP1

/// A request whose head is in order, with what has come of its body.
struct IngestRequest: Sendable {
    /// By which it is found in answers and logs.
    let name: String
    /// When its head was there.
    let start: ContinuousClock.Instant
    let head: HTTPRequestHead
    let call: APICall
    let query: RequestQuery
    /// Nil: it is not signed, and need not be.
    let signature: SignatureHeaders?
    /// Counted in the budget of bodies until the request is answered.
    var body: [UInt8] = []
}
