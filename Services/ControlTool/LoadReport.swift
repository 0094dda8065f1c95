/// What a load run found.
struct LoadReport: Sendable {
    var sent = 0
    var answers: [String: Int] = [:]
    var delivered = 0
    var duplicates = 0
    var outOfOrder = 0
    var strangers = 0
    var closedDevices = 0
    var elapsed = Duration.zero
    var answerLatency = LatencyHistogram()
    var deliveryLatency = LatencyHistogram()

    /// Pushes answered with success that no device got.
    var lost: Int { max(0, (answers["SUCCESS"] ?? 0) + (answers["NOT_ONLINE"] ?? 0) - delivered) }

    /// A run that lost, doubled, reordered or misdirected one push has failed, however fast it was.
    var isCorrect: Bool { lost == 0 && duplicates == 0 && outOfOrder == 0 && strangers == 0 }

    /// The report for people.
    var text: String {
        let quantiles = [0.5, 0.99, 0.999, 1.0]
        func line(_ name: String, _ histogram: LatencyHistogram) -> String {
            let values = histogram.milliseconds(at: quantiles).map { String(Int($0 * 1_000)) }.map(Self.milliseconds)
            return "\(name): p50 \(values[0]) ms, p99 \(values[1]) ms, p99.9 \(values[2]) ms, max \(values[3]) ms"
        }
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let codes = answers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return """
            pushes: \(sent) sent; answers: \(codes)
            delivered: \(delivered) in \(Self.milliseconds(String(Int(seconds * 1_000_000)))) ms = \(Int(Double(delivered) / seconds))/s
            \(line("POST to answer", answerLatency))
            \(line("POST to device", deliveryLatency))
            lost \(lost), duplicated \(duplicates), out of order \(outOfOrder), to the wrong device \(strangers), \
            device connections closed \(closedDevices)
            \(isCorrect ? "correct" : "NOT CORRECT")
            """
    }

    /// Microseconds as milliseconds with two decimals.
    private static func milliseconds(_ microseconds: String) -> String {
        let hundredths = ((Int(microseconds) ?? 0) + 5) / 10
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
