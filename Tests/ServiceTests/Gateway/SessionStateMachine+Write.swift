import BusMessages

@testable import Gateway

extension SessionStateMachine {
    /// Writes the waiting batches to the connection, as its handler does at the end of a turn.
    @discardableResult
    mutating func write(_ actions: [SessionAction], at now: ContinuousClock.Instant = .now) -> [SessionAction] {
        recordWritten(actions.gathered, at: now)
        return actions
    }
}

extension SessionEvent {
    /// The reply to a page request of the first bind.
    static func fetched(_ page: Mss_Bus_V1_FetchReply?, channelID: Int64) -> SessionEvent {
        .fetched(page, channelID: channelID, bindNumber: 1)
    }
}
