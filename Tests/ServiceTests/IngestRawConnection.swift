import Foundation
import Testing

/// A caller's socket to an ingest of a test; its calls block, each for at most 5 s.
final class IngestRawConnection {
    private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    private(set) var received: [UInt8] = []

    /// - Parameter bufferBytes: of the kernel's buffers, so that a caller who does not read is soon noticed.
    init(port: Int, bufferBytes: Int32? = nil) throws {
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var bufferBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
    }

    deinit { close(descriptor) }

    /// Whether all of it left; not so when the server has closed.
    @discardableResult func send(_ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Tells the server that nothing more comes.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Whether the last call failed because the server has closed the connection.
    var isReset: Bool { errno == EPIPE || errno == ECONNRESET }

    /// Takes what comes until the server closes; false when it has not after 5 s without a byte.
    func readToEnd() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return count == 0 || isReset }
            received += buffer[..<count]
        }
    }

    /// Whether there is something to read, or the end, within a time.
    func isReadable(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }

    /// What came, taken apart.
    var answers: [IngestRawAnswer] { IngestRawAnswer.all(in: received) }
}
