import JavaScriptClient
import NIOCore
import Testing

@testable import Gateway

/// HTTP answers on the gateway's port (DeviceProtocol.md, Transport).
@Suite struct WebAnswerTests {
    /// The handshake without the line that begins with `name`, and with another line in its place.
    private func handshake(without name: String, _ other: String? = nil) -> [String] {
        WebConnection.handshake.filter { !$0.hasPrefix(name) } + [other].compactMap(\.self)
    }

    private func get(_ path: String, _ more: String...) -> [String] {
        ["GET \(path) HTTP/1.1", "Host: gateway"] + more
    }

    @Test func theHandshakeIsConfirmedWithItsSubProtocolAndTheKeyOfTheStandardsExample() throws {
        let connection = try WebConnection()
        let answer = try connection.answer(to: WebConnection.handshake).lowercased()
        #expect(answer.hasPrefix("http/1.1 101 "))
        #expect(answer.contains("sec-websocket-protocol: mss.1\r\n"))
        #expect(answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"))
        #expect(!connection.isClosed)
    }

    @Test func aHandshakeThatLacksSomethingIsToldWhat() throws {
        for (lines, status, words) in [
            (handshake(without: "Sec-WebSocket-Protocol"), 400, "mss.1"),
            (handshake(without: "Sec-WebSocket-Protocol", "Sec-WebSocket-Protocol: mss.2"), 400, "mss.1"),
            (handshake(without: "Sec-WebSocket-Version"), 426, "13"),
            (handshake(without: "Sec-WebSocket-Version", "Sec-WebSocket-Version: 8"), 426, "13"),
            (handshake(without: "Sec-WebSocket-Key"), 400, "Sec-WebSocket-Key"),
            (handshake(without: "Sec-WebSocket-Key", "Sec-WebSocket-Key: short"), 400, "Sec-WebSocket-Key"),
            (handshake(without: "none", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), 400, "Sec-WebSocket-Key"),
            (handshake(without: "Upgrade"), 426, "Upgrade"),
            (handshake(without: "Upgrade", "Upgrade: h2c"), 426, "Upgrade"),
            (handshake(without: "Connection"), 426, "Upgrade"),
            (handshake(without: "none", "Content-Length: 1"), 400, "body"),
            (["POST /mss/1 HTTP/1.1"] + handshake(without: "GET"), 405, "GET"),
            (["GET /mss/2 HTTP/1.1"] + handshake(without: "GET"), 404, "/mss/1"),
        ] {
            let connection = try WebConnection()
            let answer = try connection.answer(to: lines)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(lines): \(answer)")
            #expect(answer.contains(words), "\(lines): \(answer)")
            #expect(answer.contains("Connection: close\r\n") && connection.isClosed)
        }
    }

    @Test(
        "files have their type and the headers that protect a browser",
        arguments: [
            ("/", "text/html"), ("/mss-client.js", "text/javascript"), ("/demo.js", "text/javascript"),
            ("/demo.css", "text/css"), ("/sync-express.js", "text/javascript"),
            ("/sync-express-rules.js", "text/javascript"), ("/sync-express-rows.js", "text/javascript"),
        ])
    func files(path: String, type: String) throws {
        let answer = try WebConnection().answer(to: get(path + "?v=1"))
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        let file = try #require(WebFile[path])
        for line in [
            "Content-Type: \(type); charset=utf-8", "Content-Length: \(file.content.readableBytes)",
            "Cache-Control: no-cache", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
            "Content-Security-Policy: default-src 'none'; script-src 'self'; ",
        ] { #expect(answer.contains("\r\n\(line)"), "\(line) in \(answer)") }
        #expect(
            answer.contains("\r\nAccess-Control-Allow-Origin: *\r\n") == !["/", "/demo.js", "/demo.css"].contains(path))
        #expect(answer.hasSuffix("\r\n\r\n" + String(buffer: file.content)))

        let head = try WebConnection().answer(to: ["HEAD \(path) HTTP/1.1", "Host: gateway"])
        #expect(head.hasPrefix("HTTP/1.1 200 ") && head.hasSuffix("\r\n\r\n"))
        #expect(head.contains("Content-Length: \(file.content.readableBytes)\r\n"))
        let unchanged = try WebConnection().answer(to: get(path, "If-None-Match: \(file.tag)"))
        #expect(unchanged.hasPrefix("HTTP/1.1 304 ") && unchanged.hasSuffix("\r\n\r\n"))
        #expect(try WebConnection().answer(to: get(path, "If-None-Match: \"old\"")).hasPrefix("HTTP/1.1 200 "))
    }

    @Test func anotherMethodIsNotAllowed() throws {
        for path in ["/", "/mss-client.js"] {
            let answer = try WebConnection().answer(to: ["DELETE \(path) HTTP/1.1", "Host: gateway"])
            #expect(answer.hasPrefix("HTTP/1.1 405 ") && answer.contains("Allow: GET, HEAD\r\n"))
        }
    }

    @Test func switchedOffThereIsOnlyTheWebSocket() throws {
        for path in ["/", "/mss-client.js", "/sync-express.js", "/demo.js", "/demo.css"] {
            #expect(try WebConnection(servesFiles: false).answer(to: get(path)).hasPrefix("HTTP/1.1 404 "))
        }
        let upgraded = try WebConnection(servesFiles: false).answer(to: WebConnection.handshake)
        #expect(upgraded.hasPrefix("HTTP/1.1 101 "))
    }

    @Test func aHeadHasLimits() throws {
        let field = "X-Field: " + String(repeating: "x", count: 2_000)
        for (lines, status) in [
            (get("/") + Array(repeating: field, count: 8), 200), (get("/") + Array(repeating: field, count: 9), 431),
            (get("/") + Array(repeating: "A: b", count: 99), 200),
            (get("/") + Array(repeating: "A: b", count: 100), 431), (get("/", "no field"), 400), (["\u{16}"], 400),
        ] {
            let connection = try WebConnection()
            let answer = try connection.answer(to: lines)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(lines.count) lines: \(answer)")
            #expect(connection.isClosed)
        }
    }

    @Test func onlyTheFirstRequestIsAnswered() throws {
        let answer = try WebConnection().answer(to: get("/demo.css", "") + get("/demo.css"))
        #expect(answer.split(separator: "HTTP/1.1 200").count == 1)
    }
}
