import Foundation

/// What goes back to the browser or program.
struct ConsoleAnswer: Sendable {
    enum Body: Sendable {
        case bytes([UInt8], type: String)
        /// A page: the template and what it shows.
        case page(PageContent)
        /// Written piece by piece while the other side reads.
        case stream(type: String, AsyncStream<String>)
        case none
    }

    var status = 200
    var body: Body
    /// Beside those of every answer.
    var headers: [(String, String)] = []

    /// Members of a value as JSON.
    static func json(_ value: some Encodable, status: Int = 200) -> ConsoleAnswer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = (try? encoder.encode(value)).map { Array($0) } ?? Array("{}".utf8)
        return ConsoleAnswer(status: status, body: .bytes(bytes, type: "application/json; charset=utf-8"))
    }

    /// It is done, and there is nothing to say.
    static let done = ConsoleAnswer(status: 200, body: .bytes(Array("{}".utf8), type: "application/json"))

    /// Look there instead.
    static func redirect(to path: String) -> ConsoleAnswer {
        ConsoleAnswer(status: 303, body: .none, headers: [("Location", path)])
    }

    /// A file to be saved.
    static func download(_ bytes: [UInt8], type: String, name: String) -> ConsoleAnswer {
        ConsoleAnswer(
            body: .bytes(bytes, type: type), headers: [("Content-Disposition", "attachment; filename=\"\(name)\"")])
    }

    static func page(_ content: PageContent) -> ConsoleAnswer { ConsoleAnswer(body: .page(content)) }
}
