import DeviceProtocol
import SwiftProtobuf

/// The reports of one connection about confirmations, resends and dead letters, with at most one in flight. A pure
/// value.
struct ClientReports {
    /// The wait after which an unanswered report is sent again.
    static let limit = Duration.seconds(30)

    /// A report in flight to the gateway.
    struct Sent {
        let id: UInt64
        let content: OplogReport
        /// The bound user at the time of the report.
        let userID: String?
        let sentAt: ContinuousClock.Instant
    }

    private var sent: Sent?
    private var lastID: UInt64 = 0

    /// The time when the report in flight is sent again; nil when none is in flight.
    var deadline: ContinuousClock.Instant? { sent.map { $0.sentAt + Self.limit } }

    /// Whether a report can be sent now.
    var isFree: Bool { sent == nil }

    /// Returns the frame for a content that is not empty.
    mutating func send(
        _ content: OplogReport, ofUser userID: String?, now: ContinuousClock.Instant
    ) -> Mss_Device_V1_Packet {
        lastID += 1
        sent = Sent(id: lastID, content: content, userID: userID, sentAt: now)
        return .with {
            $0.confirmReport.reportID = lastID
            $0.confirmReport.channels = content.confirmed
            $0.confirmReport.resent = content.resent
        }
    }

    /// Returns the report that the gateway has recorded; nil when this report is not in flight.
    mutating func recorded(_ id: UInt64) -> Sent? {
        guard let sent, sent.id == id else { return nil }
        self.sent = nil
        return sent
    }

    /// Forgets the report in flight when its answer is late.
    ///
    /// - Returns: whether the report must be sent again.
    mutating func removeOverdue(at now: ContinuousClock.Instant) -> Bool {
        guard let deadline, now >= deadline else { return false }
        sent = nil
        return true
    }

    /// Forgets the report in flight. Its content is collected again.
    mutating func removeAll() { sent = nil }
}
