/// The stages of a global push, from a small share to all devices. Each stage is a separate oplog for the devices that
/// it adds. So no sync point has passed it, and each device receives the data exactly once.
package struct RolloutPlan: Hashable, Sendable {
    /// Maximum number of stages.
    package static let stagesMax = 10
    /// The valid times between two automatic stages.
    package static let intervals = Duration.seconds(60)...Duration.seconds(30 * 86_400)
    /// UTF-16 units of the roll-out's thirdMsgId. The ids of stages add up to three.
    package static let idUnits = Limits.thirdMessageIDUnits - 3
    /// 1 %, 10 %, all devices.
    package static let standardStages = [100, 1_000, DeviceSlot.count]

    /// The thirdMsgId of the roll-out.
    package var id: ThirdMessageID
    /// The number of slots that have the push after each stage, rising to 10,000.
    package var stages: [Int]
    /// The time between stages; nil: an operator makes each stage.
    package var interval: Duration?

    package init(id: ThirdMessageID, stages: [Int] = standardStages, interval: Duration? = nil) {
        self.id = id
        self.stages = stages
        self.interval = interval
    }

    /// The fault that prevents the start, as a sentence; nil for a valid plan.
    package var fault: String? {
        guard (1...Self.idUnits).contains(id.text.utf16.count), !id.text.utf8.contains(0) else {
            return "thirdMsgId takes 1 to \(Self.idUnits) characters: its stages add theirs to it"
        }
        guard (2...Self.stagesMax).contains(stages.count), stages[0] > 0, stages.last == DeviceSlot.count,
            zip(stages, stages.dropFirst()).allSatisfy({ $0 < $1 })
        else {
            return "stages are 2 to \(Self.stagesMax) shares that rise from at least 0.01 % to 100 %"
        }
        if let interval, !Self.intervals.contains(interval) {
            return "the time between two stages is 1 minute to 30 days"
        }
        return nil
    }

    /// The first slot of the first stage. It differs between roll-outs, so that the same devices are not always first.
    package var start: Int { DeviceSlot(hashing: id.text).number }

    /// The thirdMsgId of a stage's push.
    ///
    /// - Parameter stage: 1 for the first.
    package func stageID(_ stage: Int) -> ThirdMessageID { ThirdMessageID("\(id.text)~\(stage)") }

    /// The devices that a stage adds.
    ///
    /// - Parameter stage: 1 for the first.
    package func share(of stage: Int) -> DeviceShare {
        let before = stage > 1 ? stages[stage - 2] : 0
        return DeviceShare(start: start + before, size: stages[stage - 1] - before)
    }

    /// A share in percent as text: `0.5`, `10`.
    package static func percent(_ slots: Int) -> String {
        guard !slots.isMultiple(of: 100) else { return "\(slots / 100)" }
        let hundredths = slots % 100
        let digits =
            hundredths.isMultiple(of: 10) ? "\(hundredths / 10)" : (hundredths < 10 ? "0" : "") + "\(hundredths)"
        return "\(slots / 100).\(digits)"
    }

    /// Reads stages in percent: `1, 10, 100`; nil for any other text.
    package static func stages(_ text: String) -> [Int]? {
        var stages: [Int] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let digits = part.trimmingSpaces.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
            let fraction = digits.count == 2 ? digits[1] : "0"
            guard digits[0].isDigits(1...3), fraction.isDigits(1...2), let whole = Int(digits[0]), whole <= 100,
                let hundredths = Int(fraction.utf8.count == 1 ? "\(fraction)0" : "\(fraction)")
            else { return nil }
            stages.append(whole * 100 + hundredths)
        }
        return stages
    }
}

extension Substring {
    /// The text without leading and trailing spaces.
    fileprivate var trimmingSpaces: Substring {
        var rest = drop { $0 == " " }
        while rest.last == " " { rest.removeLast() }
        return rest
    }

    /// Whether the text consists only of digits, in this number.
    fileprivate func isDigits(_ count: ClosedRange<Int>) -> Bool {
        count.contains(utf8.count) && utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
