/// Sends requests to the backend. `HTTPResourceTransport` is the usual implementation.
public protocol ResourceTransport: Sendable {
    /// Sends a request and waits for the complete response. A response with any status is a success of the transport.
    ///
    /// - Throws: `TransportError`, which says whether the backend may have executed the request.
    func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse

    /// Converts a reference in a response, such as `Location`, to a URI below the base URL; nil when it is not below
    /// it.
    func relative(_ reference: String) -> String?
}

extension ResourceTransport {
    /// The default: references are already relative.
    public func relative(_ reference: String) -> String? { reference }
}
