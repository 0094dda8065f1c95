/// Which devices get a global push when: stages that widen from a small share to everybody. Each stage is an oplog of
/// its own for the devices that it adds, so no sync point has passed it, nobody gets it twice and nobody misses it.
package struct RolloutPlan: Hashable, Sendable {
    /// Stages of one roll-out at the most.
    package static let stagesMax = 10
    /// Between two stages that come by time.
    package static let intervals = Duration.seconds(60)...Duration.seconds(30 * 86_400)
    /// UTF-16 units of the roll-out's unique data id: its stages' ids add up to three to it.
    package static let idUnits = Limits.thirdMessageIDUnits - 3
    /// 1 %, 10 %, everybody.
    package static let standardStages = [100, 1_000, DeviceSlot.count]

    /// The roll-out's unique data id.
    package var id: ThirdMessageID
    /// How many slots have it after each stage, rising to 10,000.
    package var stages: [Int]
    /// After which the next stage comes by itself; nil: by hand.
    package var interval: Duration?

    package init(id: ThirdMessageID, stages: [Int] = standardStages, interval: Duration? = nil) {
        self.id = id
        self.stages = stages
        self.interval = interval
    }

    /// What is wrong with it, for whoever wants to start it; nil when it can be.
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

    /// Where the first stage begins: another place for each roll-out, so that it is not always the same devices who get
    /// everything first.
    package var start: Int { DeviceSlot(hashing: id.text).number }

    /// The unique data id of a stage's own push.
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

    /// A share of all devices in percent, as people write it: `0.5`, `10`.
    package static func percent(_ slots: Int) -> String {
        guard !slots.isMultiple(of: 100) else { return "\(slots / 100)" }
        let hundredths = slots % 100
        let digits =
            hundredths.isMultiple(of: 10) ? "\(hundredths / 10)" : (hundredths < 10 ? "0" : "") + "\(hundredths)"
        return "\(slots / 100).\(digits)"
    }

    /// Reads stages as people write them, in percent: `1, 10, 100`; nil when it is no such list.
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
    /// Without spaces before and behind.
    fileprivate var trimmingSpaces: Substring {
        var rest = drop { $0 == " " }
        while rest.last == " " { rest.removeLast() }
        return rest
    }

    /// Whether it is so many digits and nothing else.
    fileprivate func isDigits(_ count: ClosedRange<Int>) -> Bool {
        count.contains(utf8.count) && utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
