/// Where an operation of this device is; the raw values stand in the local store.
enum OperationState: Int {
    /// The service cannot have it: it may be taken back.
    case waiting = 0
    /// It has gone out; the service may have it.
    case sent = 1
    /// The service has it, and will do it.
    case taken = 2
    /// It has a result; kept so that its id is known.
    case over = 3
}
