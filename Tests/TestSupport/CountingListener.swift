import Glibc
import Synchronization

/// Counts and closes the connections to a port of this machine, on any of its addresses.
package final class CountingListener: Sendable {
    package let port: Int
    private let descriptor: Int32
    private let accepted = Atomic<Int>(0)
    private let thread = Mutex(pthread_t())

    /// - Parameter port: 0 for any free port.
    package init(port: Int = 0) throws {
        descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        var (off, on): (Int32, Int32) = (0, 1)
        // Also accepts IPv4.
        setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = in_port_t(port).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let descriptor = descriptor
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isListening else { throw Failure("no listener on port \(port)") }
        self.port = Int(UInt16(bigEndian: address.sin6_port))
        let context = Unmanaged.passRetained(self)
        var made = pthread_t()
        pthread_create(
            &made, nil,
            { pointer in
                pointer.map { Unmanaged<CountingListener>.fromOpaque($0).takeRetainedValue().serve() }
                return nil
            }, context.toOpaque())
        let thread = made
        self.thread.withLock { $0 = thread }
    }

    /// The number of connections so far.
    package var count: Int { accepted.load(ordering: .sequentiallyConsistent) }

    /// Whether no connection has arrived. The listener accepts connections in their order, so a connection of this
    /// function must be the first. Call it once.
    package func isUntouched() async throws -> Bool {
        let own = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(own) }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = in_port_t(port).bigEndian
        address.sin6_addr = in6addr_loopback
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(own, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
        guard isConnected else { throw Failure("the listener on port \(port) does not answer") }
        try await eventually("the listener counts", within: .seconds(5)) { count > 0 }
        return count == 1
    }

    /// Stops the listener.
    package func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        pthread_join(thread.withLock { $0 }, nil)
        close(descriptor)
    }

    private func serve() {
        while true {
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else { return }
            accepted.add(1, ordering: .sequentiallyConsistent)
            close(connection)
        }
    }
}
