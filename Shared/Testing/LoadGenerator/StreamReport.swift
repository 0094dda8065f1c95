/// The result of one stream of pushes.
struct StreamReport: Hashable, Sendable, Codable {
    let call: String
    /// The requested pace.
    let pace: String
    let pushes: Int
    let answers: [String: Int]
    /// Time from the due instant of the call to its response.
    let postToAnswer: LatencyReport
    /// Time from the due instant of the push to its delivery, for each device.
    let postToDevice: LatencyReport
    /// Time until the last device received a global push. The value is nil for other calls.
    let postToLastDevice: LatencyReport?

    init(_ progress: StreamProgress) {
        switch progress.stream.call {
        case .single: call = "single"
        case .batch(let items): call = "batch of \(items)"
        case .global: call = "global"
        }
        switch progress.stream.pace {
        case .rate(let perSecond, _): pace = "\(perSecond)/s"
        case .window(let size, _): pace = "\(size) in flight"
        case .each(let count): pace = "\(count) a user"
        case .times(let count): pace = "\(count) times"
        }
        pushes = progress.begun
        answers = progress.answers
        postToAnswer = LatencyReport(progress.answerLatency)
        postToDevice = LatencyReport(progress.deliveryLatency)
        postToLastDevice =
            progress.stream.call == .global ? LatencyReport(progress.lastDeviceLatency) : nil
    }

    /// The report as lines of text.
    func lines(seconds: Double) -> [String] {
        let codes = answers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        let rate = LoadText.number(Double(postToDevice.count) / max(seconds, 0.001))
        var lines = [
            "\(call), \(pace): \(pushes) pushes; responses: \(codes); \(postToDevice.count) deliveries = \(rate)/s",
            "POST to response: \(postToAnswer.text)",
        ]
        if postToDevice.count > 0 { lines.append("POST to device: \(postToDevice.text)") }
        if let postToLastDevice { lines.append("POST to last device: \(postToLastDevice.text)") }
        return lines
    }
}
