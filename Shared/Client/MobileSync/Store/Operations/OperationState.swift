/// The state of an operation on this device. The local store contains the raw values.
enum OperationState: Int {
    /// The service cannot have it, so it can be cancelled.
    case waiting = 0
    /// It was sent, and the service may have it.
    case sent = 1
    /// The service has accepted it and will execute it.
    case taken = 2
    /// It has a result, and is kept so that its id is known.
    case over = 3
}
