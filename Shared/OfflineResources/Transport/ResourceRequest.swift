/// A request to the backend.
public struct ResourceRequest: Sendable, Hashable {
    public var method: String
    /// Below the base URL: a path with its leading slash, and perhaps a query.
    public var uri: String
    /// Without those of the message itself, as `Host` and `Content-Length`, and without credentials.
    public var headers: ResourceHeaders
    public var body: [UInt8]
    /// In whose name; nil: nobody is signed in. The transport adds this user's credentials.
    public var userID: String?

    /// A request without a body by default.
    public init(
        method: String, uri: String, headers: ResourceHeaders = ResourceHeaders(), body: [UInt8] = [],
        userID: String? = nil
    ) {
        self.method = method
        self.uri = uri
        self.headers = headers
        self.body = body
        self.userID = userID
    }
}
