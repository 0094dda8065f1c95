/// The operations of a step.
struct OperationReport: Hashable, Sendable, Codable {
    let pace: String
    let operations: Int
    /// Time from the due instant until the device knows that the service stored the operation.
    let toTaken: LatencyReport
    /// Time from the due instant until the result reaches the device.
    let toResult: LatencyReport

    init(_ stream: OperationStream, _ figures: OperationProgress.Figures) {
        pace = "\(stream.perSecond)/s"
        operations = figures.submitted
        toTaken = LatencyReport(figures.toTaken)
        toResult = LatencyReport(figures.toResult)
    }

    /// The report as lines of text.
    func lines(seconds: Double) -> [String] {
        let rate = LoadText.number(Double(toResult.count) / max(seconds, 0.001))
        return [
            "operations, \(pace): \(operations) submitted; \(toResult.count) results = \(rate)/s",
            "submission to stored: \(toTaken.text)", "submission to result: \(toResult.text)",
        ]
    }
}
