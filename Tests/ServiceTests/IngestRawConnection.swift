import Foundation
import Testing

/// A caller's socket to an ingest of a test; its calls block, each for at most 30 s.
final class IngestRawConnection {
    private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    private(set) var received: [UInt8] = []
    private var isEnded = false

    /// - Parameter bufferBytes: of the kernel's buffers, so that a caller who does not read is soon noticed.
    init(port: Int, bufferBytes: Int32? = nil) throws {
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var bufferBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        // A sockaddr_in by its bytes: which module its fields belong to depends on what else is imported.
        let family = withUnsafeBytes(of: sa_family_t(AF_INET)) { Array($0) }
        let address = family + [UInt8(port >> 8), UInt8(port & 0xff), 127, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
        let connected = address.withUnsafeBytes { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { connect(descriptor, $0.baseAddress, socklen_t(bytes.count)) }
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

    /// Takes what comes until the server closes; false when it has not after 30 s without a byte.
    func readToEnd() -> Bool {
        while readSome() {}
        return isEnded
    }

    /// Takes what is there; false when the server has closed, or sent nothing for 30 s.
    func readSome() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        isEnded = count == 0 || (count < 0 && isReset)
        received += buffer[..<max(0, count)]
        return count > 0
    }

    /// Whether there is something to read, or the end, within a time.
    func isReadable(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }

    /// What came, taken apart.
    var answers: [IngestRawAnswer] { IngestRawAnswer.all(in: received) }
}
