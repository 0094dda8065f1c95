/// The reason that a load from the backend failed.
enum LoadFailure: Error, Sendable {
    /// The backend is unreachable or temporarily unavailable.
    case unreachable(mayHaveArrived: Bool)
    case failed(ResourceError)
}
