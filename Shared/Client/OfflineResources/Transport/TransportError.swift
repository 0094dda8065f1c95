/// The reason that a request has no usable response.
public enum TransportError: Error, Sendable, Hashable {
    /// No connection was made: the backend has received nothing.
    case notSent(String)
    /// The connection was lost or the timeout ended: the backend may have executed the request.
    case noAnswer(String)
    /// The response cannot be used, for example because it is too long.
    case unusable(String)
    /// There are no credentials for this user.
    case noCredentials(String)
    /// The calling task was cancelled.
    case cancelled
}
