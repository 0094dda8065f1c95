import NIOCore
import Testing

@testable import Gateway

/// HTTP on the gateway: one request, which becomes a WebSocket or is answered and closed.
@Suite("SEC5: malformed upgrade requests")
struct GatewaySmugglingTests {
    /// Converts a case of the ingest's corpus to an opening handshake.
    private static func handshake(_ item: IngestSmugglingCase) -> String {
        let fields = WebConnection.handshake.dropFirst(2).map { $0 + "\r\n" }.joined()
        return item.bytes.replacing("POST \(IngestSmugglingCase.target)", with: "GET /mss/1")
            .replacing("Content-Type: application/json\r\n", with: fields)
    }

    @Test("SEC5: each malformed handshake has one answer, 4xx, and a closed connection; nothing reaches a session")
    func corpus() throws {
        var upgraded: [String] = []
        for item in IngestSmugglingCase.all where item.status == 400 {
            // With the body, which no request here may have, and without it, so that only the malformed head counts.
            let whole = Self.handshake(item)
            let bare = whole.replacing(IngestSmugglingCase.length, with: "")
                .replacing(IngestSmugglingCase.json, with: "")
            for handshake in Set([whole, bare]) {
                let connection = try WebConnection(servesFiles: true)
                let request = handshake + WebConnection.handshake.joined(separator: "\r\n") + "\r\n\r\n"
                try connection.send(Array(request.utf8))
                let answer = String(decoding: try connection.output(), as: UTF8.self)
                if answer.hasPrefix("HTTP/1.1 101 ") {
                    upgraded.append(item.name)
                    continue
                }
                #expect(answer.split(separator: "HTTP/1.1 ").count == 1, "\(item.name): \(answer)")
                #expect(answer.hasPrefix("HTTP/1.1 4"), "\(item.name): \(answer)")
                #expect(connection.isClosed, "\(item.name)")
                #expect(connection.device.bytes.isEmpty, "\(item.name)")
            }
        }
        // Without the length of the body, these two are correct.
        #expect(upgraded == ["the same length twice", "two lengths"])
    }

    @Test("SEC4: 100,000 small headers are answered 431 and are not kept")
    func manyHeaders() throws {
        let head = "GET /mss/1 HTTP/1.1\r\nHost: t\r\n"
        let connection = try WebConnection()
        try connection.send(Array((head + String(repeating: "a: b\r\n", count: 100_000) + "\r\n").utf8))
        let answer = String(decoding: try connection.output(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 431 ") && connection.isClosed)
        #expect(answer.split(separator: "HTTP/1.1 ").count == 1)
    }

    @Test("SEC4: a request with a body, compressed or not, is refused before any of it is read")
    func bodies() throws {
        for field in ["Content-Length: 5", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"] {
            let connection = try WebConnection()
            let answer = try connection.answer(to: WebConnection.handshake + [field, "Content-Encoding: gzip"])
            #expect(answer.hasPrefix("HTTP/1.1 400 ") && connection.isClosed, "\(field)")
        }
    }
}
