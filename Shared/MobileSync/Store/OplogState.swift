/// Where an oplog of the local store is on its way to the app; the raw value is on disk.
enum OplogState: Int64, Sendable {
    /// To be handed to the app as soon as it asks. Exits: handedOut, confirmed.
    case waiting = 0
    /// The app has it. Exits: confirmed, dead, waiting (the store is opened again, or a re-read).
    case handedOut = 1
    /// Given up; kept so that a re-read can revive it. Exits: waiting (a re-read), confirmed.
    case dead = 2
    /// The app has processed it; kept as history until room is needed. Exits: waiting (`recover`), deleted.
    case confirmed = 3
    /// It came on demand, for a list; the app's handlers have not had it. Exits: waiting (a push, a re-read), deleted.
    case history = 4
}
