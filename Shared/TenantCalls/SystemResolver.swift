import Foundation
import Glibc
package import NIOCore
package import ServiceKit
import Synchronization

/// The system's resolver, on threads of its own: `getaddrinfo` blocks for as long as DNS makes it wait.
///
/// A host is looked up once at a time, and whoever asks meanwhile shares the answer: a name whose DNS does not answer
/// takes one thread, however often its tenant is asked.
package final class SystemResolver: HostResolving {
    /// Names that are looked up at a time; those beyond fail at once. Only names that an operator allows come here.
    package static let lookupsMax = 64

    private let running = Mutex<[String: EventLoopFuture<[IPAddress]>]>([:])
    private let look: @Sendable (String) -> [IPAddress]

    /// - Parameter look: finds a host's addresses, and blocks meanwhile; replaced in tests.
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
            // A thread and no pool's: a pool would have to be joined at the end, and DNS may take longer than that.
            Thread.detachNewThread { [self] in
                let addresses = look(host)
                running.withLock { $0[host] = nil }
                promise.succeed(addresses)
            }
        }
        return answer.hop(to: loop)
    }

    /// The system's own way. No address: there is none, or DNS says nothing; that is the same to the caller.
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
