import LocalEntities

/// A line that the user types.
enum Command: Equatable {
    case list, messages, older, offline, online, signOut, help, quit
    case open(String)
    case report(String, title: String)
    case title(String, String)
    case note(String, String)
    case assign(String, String)
    case close(String)
    case merge(EntityConflict.Side)
    case say(String)
    case photo(String, file: String)
    case signIn(String)
    /// The name of the network; nil: there is none.
    case network(String?)

    /// The commands with their arguments, as `help` shows them.
    static let usages = [
        "list", "open N", "report N TITLE", "title N TITLE", "note N TEXT", "assign N USER", "close N",
        "merge mine|theirs", "messages", "older", "say TEXT", "photo N FILE", "offline", "online",
        "network NAME|none", "sign-in USER", "sign-out", "help", "quit",
    ]

    /// Reads a line.
    ///
    /// - Throws: `FieldError` for a name that is no command, and for missing or surplus arguments.
    init(_ line: String) throws {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard let name = words.first, let usage = Self.usages.first(where: { $0.split(separator: " ")[0] == name })
        else {
            throw FieldError("\(words.first ?? "an empty line") is no command; help lists them")
        }
        let count = usage.split(separator: " ").count - 1
        let rest = words.count > 1 ? words[1] : ""
        let arguments = rest.split(separator: " ", maxSplits: max(count - 1, 0)).map(String.init)
        guard arguments.count == count, let command = Self.command(name, arguments) else {
            throw FieldError("write: \(usage)")
        }
        self = command
    }

    private static func command(_ name: String, _ arguments: [String]) -> Command? {
        switch (name, arguments.first ?? "", arguments.last ?? "") {
        case ("list", _, _): .list
        case ("open", let id, _): .open(id)
        case ("report", let id, let title): .report(id, title: title)
        case ("title", let id, let title): .title(id, title)
        case ("note", let id, let text): .note(id, text)
        case ("assign", let id, let user): .assign(id, user)
        case ("close", let id, _): .close(id)
        case ("merge", "mine", _): .merge(.mine)
        case ("merge", "theirs", _): .merge(.theirs)
        case ("messages", _, _): .messages
        case ("older", _, _): .older
        case ("say", let text, _): .say(text)
        case ("photo", let id, let file): .photo(id, file: file)
        case ("offline", _, _): .offline
        case ("online", _, _): .online
        case ("network", let network, _): .network(network == "none" ? nil : network)
        case ("sign-in", let user, _): .signIn(user)
        case ("sign-out", _, _): .signOut
        case ("help", _, _): .help
        case ("quit", _, _): .quit
        default: nil
        }
    }
}
