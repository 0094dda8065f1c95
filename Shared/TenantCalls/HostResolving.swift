package import NIOCore
package import ServiceKit

/// Finds the addresses of a host; replaced in tests.
package protocol HostResolving: Sendable {
    /// The addresses that the host has now, best first. It does not block the caller; who waits sets the limit.
    ///
    /// - Parameter host: a DNS name.
    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]>
}
