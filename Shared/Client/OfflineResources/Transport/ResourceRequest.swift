/// A request to the backend.
public struct ResourceRequest: Sendable, Hashable {
    public var method: String
    /// The URI relative to the base URL: a path with a leading slash and an optional query.
    public var uri: String
    /// The header fields, without message fields such as `Host` and `Content-Length`, and without credentials.
    public var headers: ResourceHeaders
    public var body: [UInt8]
    /// The user of the request; nil when no user is signed in. The transport adds this user's credentials.
    public var userID: String?

    /// Makes a request, by default without header fields and body.
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
