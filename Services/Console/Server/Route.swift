import SyncModel

/// One thing that can be asked of the console, by whom, and what answers it.
struct Route: Sendable {
    typealias Handler = @Sendable (Exchange) async throws(ConsoleFault) -> ConsoleAnswer

    let method: Method
    let pattern: RoutePattern
    let access: Access
    /// The password must have been given within the last five minutes (reliability SEC14).
    var needsPassword = false
    /// What it does, in one sentence, for the API's description.
    let summary: String
    /// The members of the body.
    var inputs: [RouteInput] = []
    /// The names in the query.
    var queries: [RouteInput] = []
    /// What it answers, with everything that can be there: the description's schema is of this very encoding. Nil: an
    /// empty object, or no JSON.
    var example: (any Encodable & Sendable)?
    let answer: Handler

    /// Whether it is for the visitor's own account and session alone.
    var isOwn: Bool {
        access == .signedIn
            && ["/me", "/api/v1/me", "/api/v1/session"].contains {
                pattern.text == $0 || pattern.text.hasPrefix($0 + "/")
            }
    }

    /// Whether it belongs to the JSON API and its description.
    var isAPI: Bool { pattern.text.hasPrefix("/api/") }
}

/// A member of a body, or a name in a query, for the API's description.
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

    /// A text.
    init(_ name: String, required: Bool = false, _ words: String) {
        self.init(name, .text, required: required, words)
    }
}
