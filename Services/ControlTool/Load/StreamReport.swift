/// What became of one stream of pushes.
struct StreamReport: Hashable, Sendable, Codable {
    let call: String
    /// What it was asked to do.
    let pace: String
    let pushes: Int
    let answers: [String: Int]
    /// From the instant at which the call was due to its answer.
    let postToAnswer: LatencyReport
    /// From the instant at which the push was due to a device having it; each device counts.
    let postToDevice: LatencyReport
    /// Of pushes to everybody, until the last device has it; nil of other calls.
    let postToLastDevice: LatencyReport?

    init(_ progress: StreamProgress) {
        switch progress.stream.call {
        case .single: call = "single"
        case .batch(let items): call = "batch of \(items)"
        case .global: call = "global"
        }
        switch progress.stream.pace {
        case .rate(let perSecond, _): pace = "\(perSecond)/s"
        case .window(let size, _): pace = "\(size) under way"
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

    /// For people.
    func lines(seconds: Double) -> [String] {
        let codes = answers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        let rate = LoadText.number(Double(postToDevice.count) / max(seconds, 0.001))
        var lines = [
            "\(call), \(pace): \(pushes) pushes; answers: \(codes); \(postToDevice.count) deliveries = \(rate)/s",
            "POST to answer: \(postToAnswer.text)",
        ]
        if postToDevice.count > 0 { lines.append("POST to device: \(postToDevice.text)") }
        if let postToLastDevice { lines.append("POST to last device: \(postToLastDevice.text)") }
        return lines
    }
}
