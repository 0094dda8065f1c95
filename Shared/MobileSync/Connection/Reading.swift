/// As long as this lives, the app takes data: one iterator of `SyncOplogs`.
final class Reading: Sendable {
    /// The Sync ID it takes; nil for all.
    let bizType: String?
    private let board: ClientBoard

    init(bizType: String?, board: ClientBoard) {
        self.bizType = bizType
        self.board = board
        board.beginReading(bizType)
    }

    deinit { board.endReading(bizType) }
}
