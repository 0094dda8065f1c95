import NIOCore
import NIOHTTP1

/// One question on its way to a tenant's endpoint.
struct TenantRequest: Sendable {
    let head: HTTPRequestHead
    let body: ByteBuffer
    let promise: EventLoopPromise<TenantResponse>
}
