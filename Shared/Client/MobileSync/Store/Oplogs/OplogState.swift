/// The state of an oplog in the local store. The local store contains the raw values.
enum OplogState: Int64, Sendable {
    /// Waits for the app to read it. Next: handedOut, confirmed.
    case waiting = 0
    /// The app has it. Next: confirmed, dead, waiting (the store is opened again, or a re-read).
    case handedOut = 1
    /// A dead letter, kept so that a re-read can revive it. Next: waiting (a re-read), confirmed.
    case dead = 2
    /// The app has processed it. Kept as history until space is needed. Next: waiting (`recover`), deleted.
    case confirmed = 3
    /// It was read for a list; the app's handlers have not had it. Next: waiting (a push, a re-read), deleted.
    case history = 4
}
