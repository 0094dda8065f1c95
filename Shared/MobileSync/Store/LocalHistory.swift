/// What the local store has of a list, and what is lacking.
struct LocalHistory: Sendable {
    /// Without a gap down from where the list begins.
    var oplogs: [SyncOplog]
    /// All that is here, with gaps perhaps: for when the gateway cannot be asked.
    var islands: [SyncOplog]
    /// The gateway has more below this id; 0: it may have anything; nil: nothing.
    var askBefore: Int64?
    /// Who was bound.
    var userID: String?
}
