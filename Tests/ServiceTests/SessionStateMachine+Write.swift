import BusMessages

@testable import Gateway

extension SessionStateMachine {
    /// Writes to the connection what was handed out, as its handler does at the end of a turn.
    @discardableResult
    mutating func write(_ actions: [SessionAction], at now: ContinuousClock.Instant = .now) -> [SessionAction] {
        written(actions.gathered, at: now)
        return actions
    }
}

extension SessionEvent {
    /// A page that was asked for under the first bind.
    static func fetched(_ page: Mss_Bus_V1_FetchReply?, channelID: Int64) -> SessionEvent {
        .fetched(page, channelID: channelID, bindNumber: 1)
    }
}
