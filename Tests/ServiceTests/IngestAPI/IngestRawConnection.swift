import Foundation
import Testing

/// A caller's socket to a test's ingest. Its calls block, each for at most 30 s.
final class IngestRawConnection {
    private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    private(set) var received: [UInt8] = []
    private var isEnded = false

    /// - Parameter bufferBytes: the size of the kernel's buffers. Small buffers show soon that a caller does not read.
    init(port: Int, bufferBytes: Int32? = nil) throws {
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var bufferBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        // The bytes of a sockaddr_in: the module of its fields depends on the other imports.
        let family = withUnsafeBytes(of: sa_family_t(AF_INET)) { Array($0) }
        let address = family + [UInt8(port >> 8), UInt8(port & 0xff), 127, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
        let connected = address.withUnsafeBytes { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { connect(descriptor, $0.baseAddress, socklen_t(bytes.count)) }
        }
        try #require(connected == 0)
    }

    deinit { close(descriptor) }

    /// Sends the text. Returns false when the server has closed the connection.
    @discardableResult func send(_ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Half-closes the connection.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Whether the last call failed because the server has closed the connection.
    var isReset: Bool { errno == EPIPE || errno == ECONNRESET }

    /// Reads until the server closes. Returns false after 30 s without a byte.
    func readToEnd() -> Bool {
        while readSome() {}
        return isEnded
    }

    /// Reads the available bytes. Returns false when the server has closed, or sent nothing for 30 s.
    func readSome() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        isEnded = count == 0 || (count < 0 && isReset)
        received += buffer[..<max(0, count)]
        return count > 0
    }

    /// Whether data or the end of the connection arrives within this time.
    func isReadable(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }

    /// The parsed answers.
    var answers: [IngestRawAnswer] { IngestRawAnswer.all(in: received) }
}
