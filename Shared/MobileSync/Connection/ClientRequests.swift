import DeviceProtocol
import SwiftProtobuf

/// Questions of one connection to the gateway: a few at a time, each answered or given up; pure.
struct ClientRequests {
    /// What is asked.
    enum Question: Hashable, Sendable {
        /// Number and bind are filled in.
        case history(Mss_Device_V1_HistoryRequest)
        /// Number and bind are filled in.
        case summary(Mss_Device_V1_SummaryRequest)
    }

    /// What comes of it.
    enum Answer: Hashable, Sendable {
        case history(Mss_Device_V1_HistoryPage)
        case summary(Mss_Device_V1_SummaryPage)
        /// There is no connection, or no answer came in time.
        case none

        /// Why there is no data in it.
        var refusal: Mss_Device_V1_RequestRefusal {
            switch self {
            case .history(let page): page.refusal
            case .summary(let page): page.refusal
            case .none: .none
            }
        }
    }

    /// As many as the gateway takes without an answer.
    static let longest = 4
    /// A question that is not answered within this time is given up.
    static let limit = Duration.seconds(30)

    private struct Waiting {
        let ticket: UInt64
        let question: Question
    }

    private struct Sent {
        let ticket: UInt64
        let sentAt: ContinuousClock.Instant
    }

    private var lastNumber: UInt32 = 0
    private var waiting: ArraySlice<Waiting> = []
    private var sent: [UInt32: Sent] = [:]

    /// When the next question is given up.
    var deadline: ContinuousClock.Instant? { sent.values.map { $0.sentAt + Self.limit }.min() }

    /// Takes a question; `ticket` names it in the answer.
    mutating func ask(_ question: Question, ticket: UInt64) {
        waiting.append(Waiting(ticket: ticket, question: question))
    }

    /// The frames that may be sent now.
    mutating func next(bindNumber: UInt32, now: ContinuousClock.Instant) -> [Mss_Device_V1_Packet] {
        var packets: [Mss_Device_V1_Packet] = []
        while sent.count < Self.longest, let next = waiting.popFirst() {
            lastNumber += 1
            sent[lastNumber] = Sent(ticket: next.ticket, sentAt: now)
            packets.append(
                .with {
                    switch next.question {
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

    /// Whose answer this is; nil: nobody waits for it.
    mutating func answered(_ number: UInt32) -> UInt64? { sent.removeValue(forKey: number)?.ticket }

    /// Those that have waited too long.
    mutating func takeOverdue(at now: ContinuousClock.Instant) -> [UInt64] {
        let overdue = sent.filter { now >= $0.value.sentAt + Self.limit }
        for number in overdue.keys { sent[number] = nil }
        return overdue.values.map(\.ticket)
    }

    /// All of them: the connection is over, or another user is bound.
    mutating func takeAll() -> [UInt64] {
        defer { (waiting, sent) = ([], [:]) }
        return waiting.map(\.ticket) + sent.values.map(\.ticket)
    }
}
