import Foundation

/// The response of a route.
struct ConsoleAnswer: Sendable {
    enum Body: Sendable {
        case bytes([UInt8], type: String)
        /// A page, rendered by `PageRenderer`.
        case page(PageContent)
        /// A stream, written as fast as the client reads.
        case stream(type: String, AsyncStream<String>)
        case none
    }

    var status = 200
    var body: Body
    /// Additional headers, beside those of every response.
    var headers: [(String, String)] = []

    /// A value as JSON.
    static func json(_ value: some Encodable, status: Int = 200) -> ConsoleAnswer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = (try? encoder.encode(value)).map { Array($0) } ?? Array("{}".utf8)
        return ConsoleAnswer(status: status, body: .bytes(bytes, type: "application/json; charset=utf-8"))
    }

    /// A success without content.
    static let done = ConsoleAnswer(status: 200, body: .bytes(Array("{}".utf8), type: "application/json"))

    /// A redirect to a path of this console.
    static func redirect(to path: String) -> ConsoleAnswer {
        ConsoleAnswer(status: 303, body: .none, headers: [("Location", path)])
    }

    /// A file that the browser saves.
    static func download(_ bytes: [UInt8], type: String, name: String) -> ConsoleAnswer {
        ConsoleAnswer(
            body: .bytes(bytes, type: type), headers: [("Content-Disposition", "attachment; filename=\"\(name)\"")])
    }

    static func page(_ content: PageContent) -> ConsoleAnswer { ConsoleAnswer(body: .page(content)) }
}

/// The security headers of every response (SEC13).
enum SecurityHeaders {
    /// Browsers load scripts, styles, images and data from this console only, and no site can frame its pages.
    static let all: [(String, String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    /// For pages and data: never stored in a cache.
    static let notKept = ("Cache-Control", "no-store")
    /// For style and script: cached, and revalidated for each use.
    static let kept = ("Cache-Control", "no-cache")
    /// Sent over TLS only: browsers then use TLS for every later request.
    static let strict = ("Strict-Transport-Security", "max-age=31536000")
}
