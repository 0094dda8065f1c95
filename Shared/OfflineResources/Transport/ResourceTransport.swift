/// How requests reach the backend; `HTTPResourceTransport` is the usual one.
public protocol ResourceTransport: Sendable {
    /// Sends a request and waits for the whole answer; whatever its status, it is an answer.
    ///
    /// - Throws: `TransportError`, which says whether the backend may have done what was asked.
    func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse

    /// A reference that an answer has, as in `Location`, as a URI below the base URL; nil when it is not below that.
    func relative(_ reference: String) -> String?
}

extension ResourceTransport {
    /// References are relative already.
    public func relative(_ reference: String) -> String? { reference }
}
