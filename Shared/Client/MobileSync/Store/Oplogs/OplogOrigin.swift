/// The cause of an oplog's arrival. It decides about an oplog that is already stored.
enum OplogOrigin {
    /// A batch of the channel.
    case push
    /// A batch with data that this store had before it was replaced by an older copy of itself.
    case again
    /// A changed parameter lets the oplog through the filter.
    case newlyMatching
    /// An operator has replayed the oplog.
    case reread
    /// The app has requested all data of the Sync ID.
    case recovery
    /// A list has requested it; the app's handlers do not receive it.
    case history

    /// The state of a new row.
    var state: OplogState { self == .history ? .history : .waiting }
    var isReplay: Bool { self == .again || self == .reread || self == .recovery }

    private static let anew = """
        UPDATE SET state = \(OplogState.waiting.rawValue), hand_outs = 0, repeats = 0, needs_report = 0,
        is_replay = 1, payload = excluded.payload, valid_until_ms = excluded.valid_until_ms WHERE NOT is_recalled
        """

    /// The SQL action on an oplog that is already stored.
    var orIfKnown: String {
        switch self {
        case .push, .again, .newlyMatching:
            "UPDATE SET state = \(OplogState.waiting.rawValue) WHERE state = \(OplogState.history.rawValue)"
        case .reread: Self.anew + " AND state <> \(OplogState.confirmed.rawValue)"
        case .recovery: Self.anew + " AND NOT (state = \(OplogState.confirmed.rawValue) AND needs_report)"
        case .history: "NOTHING"
        }
    }
}
