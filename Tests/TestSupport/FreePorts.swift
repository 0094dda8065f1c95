import Glibc

/// Finds free ports of the loopback address.
package enum FreePorts {
    /// Returns consecutive free ports below the range that the system uses for outgoing connections.
    package static func find(_ count: Int) throws -> [Int] {
        for _ in 0..<200 {
            let first = Int.random(in: 10_000..<(32_000 - count))
            let ports = Array(first..<first + count)
            if ports.allSatisfy(isFree) { return ports }
        }
        throw Failure("no \(count) free ports in a row")
    }

    private static func isFree(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
