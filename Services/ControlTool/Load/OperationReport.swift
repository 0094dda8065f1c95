/// What became of a step's operations.
struct OperationReport: Hashable, Sendable, Codable {
    let pace: String
    let operations: Int
    /// From the instant at which one was due until its device knows that the service has it.
    let toTaken: LatencyReport
    /// Until its result has reached its device.
    let toResult: LatencyReport

    init(_ stream: OperationStream, _ figures: OperationProgress.Figures) {
        pace = "\(stream.perSecond)/s"
        operations = figures.submitted
        toTaken = LatencyReport(figures.toTaken)
        toResult = LatencyReport(figures.toResult)
    }

    /// For people.
    func lines(seconds: Double) -> [String] {
        let rate = LoadText.number(Double(toResult.count) / max(seconds, 0.001))
        return [
            "operations, \(pace): \(operations) sent up; \(toResult.count) results = \(rate)/s",
            "sent up to taken: \(toTaken.text)", "sent up to result: \(toResult.text)",
        ]
    }
}
