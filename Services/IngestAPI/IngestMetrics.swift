import BackendCalls
import Metrics
import NIOHTTP1
import SyncModel

/// The metrics of the API. Every label comes from a closed set, so every series exists from the start.
final class IngestMetrics: Sendable {
    /// Business results by code; refusals by status.
    private let answers: [ResultCode: Counter]
    private let duration = Timer(label: "ingest_request_duration")
    private let inFlightGauge = Gauge(label: "ingest_in_flight")

    /// Creates the series in the current metrics system.
    init() {
        answers = Dictionary(
            uniqueKeysWithValues: ResultCode.allCases.map { code in
                let counter =
                    code.isAttempted
                    ? Counter(label: "ingest_requests", dimensions: [("code", code.rawValue)])
                    : Counter(label: "ingest_refusals", dimensions: [("status", String(code.status))])
                return (code, counter)
            })
    }

    /// Counts a response: business results by code, all others by status.
    func answered(_ answer: HTTPAnswer) { answers[answer.content.code]?.increment() }

    /// Records the time from a request's head to its response.
    func took(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self.duration.recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// Sets the number of pushes that wait for the store.
    func inFlight(_ count: Int) { inFlightGauge.record(count) }
}
