import SyncModel

/// How far back an overview looks, and in what steps.
enum OverviewRange: String, CaseIterable, Sendable {
    case hour, day, week, month

    /// The whole time.
    var length: Duration {
        switch self {
        case .hour: .seconds(3_600)
        case .day: .seconds(86_400)
        case .week: .seconds(7 * 86_400)
        case .month: .seconds(30 * 86_400)
        }
    }

    /// One point of a chart.
    var step: Duration {
        switch self {
        case .hour: .seconds(60)
        case .day: .seconds(600)
        case .week: .seconds(3_600)
        case .month: .seconds(4 * 3_600)
        }
    }

    /// The whole steps that end with the one that a moment is in.
    func steps(at now: WallTime) -> (from: WallTime, to: WallTime) {
        let step = step.wholeMilliseconds
        let end = (now.milliseconds / step + 1) * step
        return (WallTime(milliseconds: end - length.wholeMilliseconds), WallTime(milliseconds: end))
    }
}
