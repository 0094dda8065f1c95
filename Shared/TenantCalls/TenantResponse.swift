package import NIOHTTP1

/// What came back, whole.
package struct TenantResponse: Sendable {
    package let status: HTTPResponseStatus
    package let headers: HTTPHeaders
    package let body: [UInt8]
    /// Whether the connection can take another question.
    package let keepsConnection: Bool
}
