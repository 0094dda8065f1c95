import DeviceProtocol
import SwiftProtobuf

/// The requests of one connection, a few in flight at a time, each with a reply or a timeout. A pure value.
struct ClientRequests {
    /// A request. The connection fills in the request number and the bind number.
    enum Request: Hashable, Sendable {
        case history(Mss_Device_V1_HistoryRequest)
        case summary(Mss_Device_V1_SummaryRequest)
    }

    /// The reply to a request.
    enum Answer: Hashable, Sendable {
        case history(Mss_Device_V1_HistoryPage)
        case summary(Mss_Device_V1_SummaryPage)
        /// There was no connection, or no reply in time.
        case none

        /// The reason why the reply has no data.
        var refusal: Mss_Device_V1_RequestRefusal {
            switch self {
            case .history(let page): page.refusal
            case .summary(let page): page.refusal
            case .none: .none
            }
        }
    }

    /// The most requests in flight that the gateway accepts.
    static let longest = 4
    /// The longest wait for a reply.
    static let limit = Duration.seconds(30)

    private struct Waiting {
        let ticket: UInt64
        let request: Request
    }

    private struct Sent {
        let ticket: UInt64
        let sentAt: ContinuousClock.Instant
    }

    private var lastNumber: UInt32 = 0
    private var waiting: ArraySlice<Waiting> = []
    private var sent: [UInt32: Sent] = [:]

    /// The time of the next timeout.
    var deadline: ContinuousClock.Instant? { sent.values.map { $0.sentAt + Self.limit }.min() }

    /// Adds a request. `ticket` identifies it in the reply.
    mutating func ask(_ request: Request, ticket: UInt64) {
        waiting.append(Waiting(ticket: ticket, request: request))
    }

    /// Returns the frames that can be sent now.
    mutating func next(bindNumber: UInt32, now: ContinuousClock.Instant) -> [Mss_Device_V1_Packet] {
        var packets: [Mss_Device_V1_Packet] = []
        while sent.count < Self.longest, let next = waiting.popFirst() {
            lastNumber += 1
            sent[lastNumber] = Sent(ticket: next.ticket, sentAt: now)
            packets.append(
                .with {
                    switch next.request {
                    case .history(let request):
                        $0.historyRequest = request
                        $0.historyRequest.requestNumber = lastNumber
                        $0.historyRequest.bindNumber = bindNumber
                    case .summary(let request):
                        $0.summaryRequest = request
                        $0.summaryRequest.requestNumber = lastNumber
                        $0.summaryRequest.bindNumber = bindNumber
                    }
                })
        }
        return packets
    }

    /// Returns the ticket of the answered request; nil for an unknown number.
    mutating func answered(_ number: UInt32) -> UInt64? { sent.removeValue(forKey: number)?.ticket }

    /// Removes the requests whose reply is late, and returns their tickets.
    mutating func removeOverdue(at now: ContinuousClock.Instant) -> [UInt64] {
        let overdue = sent.filter { now >= $0.value.sentAt + Self.limit }
        for number in overdue.keys { sent[number] = nil }
        return overdue.values.map(\.ticket)
    }

    /// Removes all requests at the end of the connection or at a bind, and returns their tickets.
    mutating func removeAll() -> [UInt64] {
        defer { (waiting, sent) = ([], [:]) }
        return waiting.map(\.ticket) + sent.values.map(\.ticket)
    }
}
