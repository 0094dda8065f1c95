/// The completions of requests to the gateway that have no reply, by ticket. Not thread-safe.
struct PendingRequests {
    /// Receives the reply to a request.
    typealias Completion = (ClientRequests.Answer) -> Void

    private var completions: [UInt64: Completion] = [:]
    private var lastTicket: UInt64 = 0

    /// Adds a request, and returns its ticket.
    mutating func add(_ completion: @escaping Completion) -> UInt64 {
        lastTicket += 1
        completions[lastTicket] = completion
        return lastTicket
    }

    /// Removes a request, and returns its completion.
    mutating func remove(_ ticket: UInt64) -> Completion? { completions.removeValue(forKey: ticket) }
}
