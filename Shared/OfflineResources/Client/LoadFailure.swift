/// Why the service gave nothing.
enum LoadFailure: Error, Sendable {
    /// It could not be reached, or does not answer now.
    case unreachable(mayHaveArrived: Bool)
    case failed(ResourceError)
}
