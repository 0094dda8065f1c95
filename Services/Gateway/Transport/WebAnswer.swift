import JavaScriptClient
import NIOHTTP1
import ServiceKit

/// The response to an HTTP request; pure (DeviceProtocol.md, Transport).
enum WebAnswer: Sendable {
    /// The connection becomes a WebSocket.
    case webSocket
    case file(WebFile)
    /// The browser has this content already.
    case unchanged(WebFile)
    /// - Parameter fields: additional header fields.
    case refusal(HTTPResponseStatus, String, fields: HTTPHeaders = [:])

    /// The path of the WebSocket.
    static let webSocketPath = "/mss/1"
    /// The WebSocket's sub-protocol.
    static let webSocketProtocol = "mss.1"

    /// Decides by the head alone, because no request here has a body.
    init(to head: HTTPRequestHead, servesFiles: Bool) {
        let path = String(head.uri.prefix { $0 != "?" })
        if head.headers.contains(name: "Transfer-Encoding")
            || head.headers["Content-Length"].contains(where: { $0 != "0" })
        {
            self = .refusal(.badRequest, "Requests must not have a body.")
        } else if head.headers["Host"].count != 1 || !head.headers["Host"].allSatisfy(HostField.isValid) {
            self = .refusal(.badRequest, "Send Host once: a name or an address, with or without a port.")
        } else if path == Self.webSocketPath {
            self = Self.toHandshake(head)
        } else if servesFiles, let file = WebFile[path] {
            self = Self.toFile(file, head)
        } else {
            self = .refusal(.notFound, "Not found. Devices connect to \(Self.webSocketPath).")
        }
    }

    private static func toFile(_ file: WebFile, _ head: HTTPRequestHead) -> WebAnswer {
        guard head.method == .GET || head.method == .HEAD else {
            return .refusal(.methodNotAllowed, "Use GET or HEAD.", fields: ["Allow": "GET, HEAD"])
        }
        return head.headers[canonicalForm: "If-None-Match"].contains { $0 == file.tag } ? .unchanged(file) : .file(file)
    }

    /// The opening handshake (RFC 6455, 4.2.1).
    private static func toHandshake(_ head: HTTPRequestHead) -> WebAnswer {
        func has(_ word: String, in field: String) -> Bool {
            head.headers[canonicalForm: field].contains { $0.lowercased() == word }
        }
        guard head.method == .GET else {
            return .refusal(.methodNotAllowed, "A WebSocket begins with GET.", fields: ["Allow": "GET"])
        }
        guard has("websocket", in: "Upgrade"), has("upgrade", in: "Connection") else {
            return .refusal(
                .upgradeRequired, "This is a WebSocket: send Upgrade: websocket and Connection: Upgrade.",
                fields: ["Upgrade": "websocket", "Sec-WebSocket-Version": "13"])
        }
        guard head.headers["Sec-WebSocket-Version"] == ["13"] else {
            return .refusal(
                .upgradeRequired, "The version of WebSocket here is 13: send one Sec-WebSocket-Version: 13.",
                fields: ["Upgrade": "websocket", "Sec-WebSocket-Version": "13"])
        }
        let keys = head.headers["Sec-WebSocket-Key"]
        guard keys.count == 1, keys[0].utf8.count == 24, keys[0].hasSuffix("==") else {
            return .refusal(.badRequest, "Send one Sec-WebSocket-Key: 16 bytes in Base64.")
        }
        guard head.headers[canonicalForm: "Sec-WebSocket-Protocol"].contains(where: { $0 == webSocketProtocol }) else {
            return .refusal(
                .badRequest, "The sub-protocol is missing: send Sec-WebSocket-Protocol: \(webSocketProtocol).")
        }
        return .webSocket
    }
}
