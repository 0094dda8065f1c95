@testable import Gateway

extension SessionStateMachine {
    /// Writes to the connection what was handed out, as its handler does at the end of a turn.
    @discardableResult
    mutating func write(_ actions: [SessionAction]) -> [SessionAction] {
        written(
            actions.compactMap { action in
                guard case .push(let batch, let oplogs, let channelID) = action else { return nil }
                return GatheredBatch(batch: batch, oplogs: oplogs, channelID: channelID)
            })
        return actions
    }
}
