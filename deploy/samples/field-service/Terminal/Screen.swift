/// The content of the terminal: the live list, and below it what the user has opened. A pure value.
struct Screen: Sendable {
    /// An incident as it is shown.
    struct Row: Sendable {
        var id: String
        /// `C`, `U`: the backend does not have the change yet; `!`: it refused the change; a space: nothing waits.
        var mark: Character
        var summary: String
        /// The backend's version while the row is in conflict.
        var theirs: String?
    }

    /// The part below the list.
    enum Part: Sendable, Equatable {
        case none, conversation
        case incident(String)
    }

    /// A message, with its id.
    struct Line: Sendable {
        var id: Int64
        var text: String
    }

    /// The signed-in user; nil for none.
    var user: String?
    var isConnected = false
    /// The name of the network; empty: not known.
    var network = ""
    var unread = 0
    var rows: [Row] = []
    var part = Part.none
    /// The messages without a gap, oldest first.
    private(set) var messages: [Line] = []
    /// The photos that are being sent, by incident, in percent.
    var photos: [String: Int] = [:]
    /// The answer to the last command.
    var reply: [String] = []

    /// Opens the conversation at its newest page.
    mutating func openConversation() {
        part = .conversation
        messages = messages.suffix(FieldApp.pageSize)
    }

    /// Adds the newest messages. They replace the former ones when the conversation is not open, and when they leave a
    /// gap to them.
    mutating func add(newest page: [Line]) {
        let isContinued = page.contains { line in messages.contains { $0.id == line.id } }
        add(part == .conversation && isContinued ? messages : [], page)
    }

    /// Adds the messages before the oldest one.
    mutating func add(older page: [Line]) { add(page, messages) }

    private mutating func add(_ first: [Line], _ second: [Line]) {
        let lines = Dictionary((first + second).map { ($0.id, $0) }) { $1 }
        messages = lines.values.sorted { $0.id < $1.id }
    }

    /// The lines of the screen.
    var lines: [String] {
        guard let user else { return ["not signed in"] + reply }
        var head = [user, isConnected ? "connected" : "offline"]
        if !network.isEmpty { head.append(network) }
        if unread > 0 { head.append("\(unread) unread") }
        let list = rows.map { "\($0.mark) \($0.id) \($0.summary)" }
        let sending = photos.sorted { $0.key < $1.key }.map { "photo of \($0.key): \($0.value) %" }
        return [head.joined(separator: ", ")] + list + opened + sending + reply
    }

    private var opened: [String] {
        switch part {
        case .none: return []
        case .conversation: return ["messages:"] + messages.map { "  \($0.text)" }
        case .incident(let id):
            guard let row = rows.first(where: { $0.id == id }) else { return [] }
            guard let theirs = row.theirs else { return ["incident \(id): \(row.summary)"] }
            return ["incident \(id) is in conflict", "  mine:   \(row.summary)", "  theirs: \(theirs)"]
        }
    }
}
