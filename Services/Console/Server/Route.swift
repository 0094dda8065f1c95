import Foundation
import SyncModel

/// One route: its method and path, its required right, and its handler.
struct Route: Sendable {
    typealias Handler = @Sendable (ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer

    let method: Method
    let pattern: RoutePattern
    let access: Access
    /// Whether the account must have confirmed its password within the last five minutes (SEC14).
    var needsPassword = false
    /// The route's effect in one sentence, for the API's description; translated in `sentences.json`.
    let summary: String
    /// The members of the body.
    var inputs: [RouteInput] = []
    /// The parameters of the query.
    var queries: [RouteInput] = []
    /// An answer in which every member is present; its encoding gives the description's schema. The value is nil when
    /// the answer is
    /// empty or not JSON.
    var example: (any Encodable & Sendable)?
    let answer: Handler

    /// Whether the route reads and changes only the account and session of the request.
    var isOwn: Bool {
        access == .signedIn
            && ["/me", "/api/v1/me", "/api/v1/session"].contains {
                pattern.text == $0 || pattern.text.hasPrefix($0 + "/")
            }
    }

    /// Whether the route belongs to the JSON API and its description.
    var isAPI: Bool { pattern.text.hasPrefix("/api/") }
}

/// A member of a body or a parameter of a query, for the API's description.
struct RouteInput: Sendable {
    enum Form: String, Sendable {
        case text = "string"
        case whole = "integer"
        case flag = "boolean"
        case list = "array"
        case object = "object"
    }

    let name: String
    let form: Form
    var isRequired = false
    let words: String

    init(_ name: String, _ form: Form, required: Bool = false, _ words: String) {
        self.name = name
        self.form = form
        isRequired = required
        self.words = words
    }

    /// A text input.
    init(_ name: String, required: Bool = false, _ words: String) {
        self.init(name, .text, required: required, words)
    }
}

/// The methods of the console's routes: GET reads, the others change.
enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
}

/// A path with named parts, such as `/instances/{instance}/records/{number}`.
struct RoutePattern: Sendable, Hashable {
    let text: String
    private let parts: [String]

    init(_ text: String) {
        self.text = text
        parts = text.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
    }

    /// The names of the named parts, in order.
    var names: [String] { parts.compactMap(Self.name) }

    /// The values of the named parts; nil when the path does not match.
    ///
    /// - Parameter path: the parts of the path, percent-encoded as received.
    func match(_ path: [Substring]) -> [String: String]? {
        guard path.count == parts.count else { return nil }
        var values: [String: String] = [:]
        for (part, given) in zip(parts, path) {
            if let name = Self.name(part) {
                guard let value = String(given).removingPercentEncoding, !value.isEmpty else { return nil }
                values[name] = value
            } else if part != given {
                return nil
            }
        }
        return values
    }

    private static func name(_ part: String) -> String? {
        part.hasPrefix("{") && part.hasSuffix("}") ? String(part.dropFirst().dropLast()) : nil
    }
}
