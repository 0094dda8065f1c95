import Foundation
import Glibc
import Synchronization

/// A tenant endpoint for one call: it accepts a connection, reads a request and writes fixed bytes.
package final class FakeTenant: Sendable {
    /// The complete response that a session is valid.
    package static let valid =
        "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n" + #"{"success":true,"result":{"valid":true}} "#
    /// The port on a loopback address.
    package let port: Int
    private let listener: Int32
    private let answer: [UInt8]
    private let keepsOpen: Bool
    private let request = Mutex<[UInt8]>([])
    private let thread: Mutex<pthread_t>

    /// - Parameters:
    ///   - keepsOpen: whether the connection stays open after the response, until `stop`.
    ///   - port: 0 for any free port.
    package init(answer: String, keepsOpen: Bool, address host: String = "127.0.0.1", port: Int = 0) throws {
        self.answer = Array(answer.utf8)
        self.keepsOpen = keepsOpen
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr(host)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 4) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isListening else {
            close(listener)
            throw Failure("the fake tenant cannot listen")
        }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        thread = Mutex(pthread_t())
        let context = Unmanaged.passRetained(self)
        var made = pthread_t()
        pthread_create(
            &made, nil,
            { pointer in
                pointer.map { Unmanaged<FakeTenant>.fromOpaque($0).takeRetainedValue().serve() }
                return nil
            }, context.toOpaque())
        let thread = made
        self.thread.withLock { $0 = thread }
    }

    /// Stops the endpoint and returns the request that it received.
    package func stop() -> String {
        shutdown(listener, Int32(SHUT_RDWR))
        pthread_join(thread.withLock { $0 }, nil)
        close(listener)
        return String(decoding: request.withLock { $0 }, as: UTF8.self)
    }

    private func serve() {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        defer { close(connection) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !request.withLock({ Self.isWhole($0) }) {
            let count = read(connection, &buffer, buffer.count)
            guard count > 0 else { return }
            request.withLock { $0 += buffer[..<count] }
        }
        _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
        // The caller closes the connection after its time limit.
        if keepsOpen { while read(connection, &buffer, buffer.count) > 0 {} }
    }

    /// Whether the request has its head and as many body bytes as its Content-Length.
    private static func isWhole(_ request: [UInt8]) -> Bool {
        let text = String(decoding: request, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return false }
        let head = text[..<end.lowerBound].lowercased()
        guard let field = head.range(of: "content-length: ") else { return true }
        let length = Int(head[field.upperBound...].prefix { $0.isNumber }) ?? 0
        return text[end.upperBound...].utf8.count >= length
    }
}
