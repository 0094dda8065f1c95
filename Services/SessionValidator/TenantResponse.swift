import NIOHTTP1

/// What came back, whole.
struct TenantResponse: Sendable {
    let status: HTTPResponseStatus
    let headers: HTTPHeaders
    let body: [UInt8]
    /// Whether the connection can take another question.
    let keepsConnection: Bool
}
