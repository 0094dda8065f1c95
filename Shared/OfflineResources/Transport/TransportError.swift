/// Why there is no answer.
public enum TransportError: Error, Sendable, Hashable {
    /// No connection could be made: the backend has nothing of the request.
    case notSent(String)
    /// The connection was lost, or the time is up: the backend may have done what was asked.
    case noAnswer(String)
    /// The answer cannot be used, for example because it is too long.
    case unusable(String)
    /// There are no credentials for this user.
    case noCredentials(String)
    /// The calling task was cancelled.
    case cancelled
}
