/// The backend's answer.
public struct ResourceResponse: Sendable, Hashable {
    public var status: Int
    public var headers: ResourceHeaders
    public var body: [UInt8]

    /// An answer without a body by default.
    public init(status: Int, headers: ResourceHeaders = ResourceHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}
