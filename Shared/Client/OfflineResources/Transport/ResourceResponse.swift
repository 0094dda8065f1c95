/// The backend's response.
public struct ResourceResponse: Sendable, Hashable {
    public var status: Int
    public var headers: ResourceHeaders
    public var body: [UInt8]

    /// Makes a response, by default without header fields and body.
    public init(status: Int, headers: ResourceHeaders = ResourceHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}
