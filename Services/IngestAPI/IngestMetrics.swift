import BackendCalls
import Metrics
import NIOHTTP1
import SyncModel

/// What the API counts; every label comes from a closed set, so every series exists from the start.
final class IngestMetrics: Sendable {
    /// The statuses that answer something other than a business result.
    private static let statuses: [UInt] = [400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 429, 431, 503]

    private let byCode: [ResultCode: Counter]
    private let byStatus: [UInt: Counter]
    private let otherStatus = Counter(label: "ingest_refusals", dimensions: [("status", "other")])
    private let duration = Timer(label: "ingest_request_duration")
    private let inFlightGauge = Gauge(label: "ingest_in_flight")

    /// Makes the series with the metrics system in force.
    init() {
        byCode = Dictionary(
            uniqueKeysWithValues: ResultCode.allCases.map {
                ($0, Counter(label: "ingest_requests", dimensions: [("code", $0.rawValue)]))
            })
        byStatus = Dictionary(
            uniqueKeysWithValues: Self.statuses.map {
                ($0, Counter(label: "ingest_refusals", dimensions: [("status", String($0))]))
            })
    }

    /// Counts an answer: business results by code, everything else by status.
    func answered(_ answer: HTTPAnswer) {
        if answer.status == .ok {
            byCode[answer.content.code]?.increment()
        } else {
            (byStatus[answer.status.code] ?? otherStatus).increment()
        }
    }

    /// Records how long a push took, from its head to its answer.
    func took(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self.duration.recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// Sets how many pushes wait for the store.
    func inFlight(_ count: Int) { inFlightGauge.record(count) }
}
