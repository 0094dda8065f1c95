import Foundation
import Glibc
package import NIOCore
package import ServiceKit
import Synchronization

/// Finds the addresses of a host; replaced in tests.
package protocol HostResolving: Sendable {
    /// The current addresses of the host, in order of preference. Does not block; the caller sets the time limit.
    ///
    /// - Parameter host: a DNS name.
    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]>
}

/// Resolves names with `getaddrinfo`, on separate threads because the call blocks.
///
/// Concurrent requests for one host share one lookup. So a name without a DNS reply occupies only one thread.
package final class SystemResolver: HostResolving {
    /// Maximum number of concurrent lookups; further ones fail at once. Only names that an operator allows are looked
    /// up.
    package static let lookupsMax = 64

    private let running = Mutex<[String: EventLoopFuture<[IPAddress]>]>([:])
    private let look: @Sendable (String) -> [IPAddress]

    /// - Parameter look: finds the addresses of a host and may block; replaced in tests.
    package init(look: @escaping @Sendable (String) -> [IPAddress] = SystemResolver.look) { self.look = look }

    package func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]> {
        let (answer, promise) = running.withLock {
            running -> (EventLoopFuture<[IPAddress]>, EventLoopPromise<[IPAddress]>?) in
            if let answer = running[host] { return (answer, nil) }
            guard running.count < Self.lookupsMax else {
                return (loop.makeFailedFuture(CalloutRefusal("too many names are being looked up")), nil)
            }
            let promise = loop.makePromise(of: [IPAddress].self)
            running[host] = promise.futureResult
            return (promise.futureResult, promise)
        }
        if let promise {
            // Not a thread pool: a pool must be joined at shutdown, and DNS can take longer than that.
            Thread.detachNewThread { [self] in
                let addresses = look(host)
                running.withLock { $0[host] = nil }
                promise.succeed(addresses)
            }
        }
        return answer.hop(to: loop)
    }

    /// Looks up a host with `getaddrinfo`. Empty for a host without addresses, and when DNS does not reply.
    @Sendable package static func look(_ host: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        return sequence(first: list, next: { $0?.pointee.ai_next }).prefix { $0 != nil }.compactMap { entry in
            guard let entry = entry?.pointee, let address = entry.ai_addr else { return nil }
            return switch entry.ai_family {
            case AF_INET:
                address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { IPAddress($0.pointee.sin_addr) }
            case AF_INET6:
                address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { IPAddress($0.pointee.sin6_addr) }
            default: nil
            }
        }
    }
}
