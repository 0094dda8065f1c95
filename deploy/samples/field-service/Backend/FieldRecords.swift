import Foundation
import MobileSync

/// The tenant's data: incidents with their versions, photos with their tags, the users' counts of unread messages, the
/// responses that were sent, and the pushes that are still to be sent. A pure value.
struct FieldRecords: Codable, Sendable {
    /// One incident.
    struct Row: Codable, Sendable {
        /// Rises with each change.
        var counter: Int64
        /// The counter of the last change by a user.
        var lastEdit: Int64
        var fields: [String: JSONValue]
    }

    /// One photo.
    struct Photo: Codable, Sendable {
        var version: Int
        var contentType: String
        var bytes: Data
        /// The condition of its upload.
        var replaced: String?

        /// Its entity tag.
        var tag: String { "\"v\(version)\"" }
    }

    /// The response to a request, stored for a repeat of the request.
    struct Answer: Codable, Sendable, Hashable {
        var status: Int
        var body = ""
        var tag: String?
    }

    /// A push.
    struct Push: Codable, Sendable, Hashable {
        var bizType: String
        /// The receiver of the push; nil for all users.
        var user: String?
        /// Unique in a channel, so that a repeat has no effect.
        var id: String
        var payload: String
    }

    /// The largest size of a row's fields, in UTF-16 units.
    private static let mostUnits = 3_000

    /// The Sync ID of messages, and the component of the operation that sends one.
    private static let conversation = "FIELD_CHAT"
    /// The Sync ID of badges, and the component of the operation that reports a tap.
    private static let badges = "MSS_BADGES"

    /// The users of the app.
    let users: [String]
    /// By `component/key`.
    private(set) var rows: [String: Row] = [:]
    private(set) var photos: [String: Photo] = [:]
    /// By idempotency key.
    private(set) var answers: [String: Answer] = [:]
    /// The pushes to send, the oldest first.
    private(set) var owed: [Push] = []
    private var messages = 0
    /// The unread messages by user.
    private var unread: [String: Int] = [:]
    /// The versions of the users' badges. A version rises with each change.
    private var badgeVersions: [String: Int] = [:]

    init(users: [String]) { self.users = users }

    // MARK: Operations

    /// Executes an operation once, also when it is repeated.
    ///
    /// - Parameter key: the `Idempotency-Key` of the call.
    mutating func perform(_ call: OperationCall, key: String) -> Answer {
        if let known = answers[key] { return known }
        let answer = answer(to: call)
        answers[key] = answer
        return answer
    }

    private mutating func answer(to call: OperationCall) -> Answer {
        switch (call.component, call.operation) {
        case ("Incident", _): return changeIncident(call)
        case (Self.conversation, "say"): return addMessage(call)
        case (Self.badges, "tap"):
            unread[call.userId] = 0
            return Answer(status: 200, body: #"{"import":\#(badge(of: call.userId))}"#)
        default: return Self.refusal(404, "there is no operation \(call.operation) of \(call.component)")
        }
    }

    private mutating func changeIncident(_ call: OperationCall) -> Answer {
        let place = "\(call.component)/\(call.entityKey)"
        let name = "\(call.component.lowercased()) \(call.entityKey)"
        guard case .object(let fields)? = call.member("fields") else { return Self.refusal(400, "there are no fields") }
        // The fields must fit in a push.
        guard Self.text(.object(fields)).utf16.count <= Self.mostUnits else {
            return Self.refusal(413, "\(name) is too long")
        }
        switch (call.operation, rows[place]) {
        case ("create", nil): rows[place] = Row(counter: 1, lastEdit: 1, fields: fields)
        case ("create", _?): return Self.refusal(409, "\(name) exists already")
        case ("update", var row?):
            // An update must be based on the last edit. A later photo is no conflict.
            guard case .integer(let base)? = call.member("counter"), (row.lastEdit...row.counter).contains(base) else {
                return Self.refusal(409, "another user has changed \(name)")
            }
            var changed = Set(fields.keys)
            if case .array(let names)? = call.member("changed") {
                changed.formIntersection(names.compactMap { if case .text(let name) = $0 { name } else { nil } })
            }
            // Only the backend sets the photo.
            for name in changed where name != "photo" { row.fields[name] = fields[name] }
            row.counter += 1
            row.lastEdit = row.counter
            rows[place] = row
        case ("update", nil): return Self.refusal(404, "there is no \(name)")
        default: return Self.refusal(405, "there is no operation \(call.operation)")
        }
        let state = publish(call.component, call.entityKey)
        return Answer(status: 200, body: #"{"import":\#(state)}"#)
    }

    /// Pushes a message to all users, and the number of unread messages to all but its sender.
    private mutating func addMessage(_ call: OperationCall) -> Answer {
        guard case .text(let text)? = call.member("text"), text.utf16.count <= Self.mostUnits else {
            return Self.refusal(400, "a message has a text of at most \(Self.mostUnits) characters")
        }
        messages += 1
        let message = JSONValue.object(["by": .text(call.userId), "text": .text(text)])
        owed.append(Push(bizType: Self.conversation, id: "message-\(messages)", payload: Self.text(message)))
        for user in users where user != call.userId {
            unread[user, default: 0] += 1
            let badge = badge(of: user)
            owed.append(
                Push(
                    bizType: Self.badges, user: user, id: "badge-\(user)-\(badgeVersions[user] ?? 0)", payload: badge))
        }
        return Answer(status: 200)
    }

    /// The badge of a user under a new version, as JSON.
    private mutating func badge(of user: String) -> String {
        let version = (badgeVersions[user] ?? 0) + 1
        badgeVersions[user] = version
        let (count, path) = (unread[user] ?? 0, JSONValue.text("home/conversation"))
        // A tapped badge is shown again only with a higher stamp.
        let change: [String: JSONValue] =
            count == 0
            ? ["path": path, "style": "none"]
            : ["path": path, "style": "number", "number": .integer(Int64(count)), "stamp": .integer(Int64(messages))]
        return Self.text(
            .object(["version": .integer(Int64(version)), "changes": .array([.object(change)])]))
    }

    private static func refusal(_ code: Int, _ message: String) -> Answer {
        Answer(status: code, body: #"{"code":\#(code),"message":"\#(message)"}"#)
    }

    /// Adds a push with the current row.
    ///
    /// - Returns: the payload of the push, as JSON.
    private mutating func publish(_ component: String, _ key: String) -> String {
        guard let row = rows["\(component)/\(key)"] else { return "null" }
        let entity = JSONValue.object([
            "key": .text(key), "change": "U", "counter": .integer(row.counter), "fields": .object(row.fields),
        ])
        let state = Self.text(.object(["entities": .array([entity])]))
        owed.append(Push(bizType: component, id: "\(component)-\(key)-\(row.counter)", payload: state))
        return state
    }

    private static func text(_ value: JSONValue) -> String {
        (try? value.bytes()).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }

    // MARK: Photos

    /// Adds or replaces a photo. A repeat of the last upload, whose response was lost, changes nothing.
    ///
    /// - Parameters:
    ///   - condition: `If-Match`; nil: the sender knows of no photo.
    mutating func putPhoto(_ id: String, _ bytes: Data, contentType: String, condition: String?) -> Answer {
        let present = photos[id]
        if let present, present.replaced == condition, present.bytes == bytes, present.contentType == contentType {
            return Answer(status: 200, tag: present.tag)
        }
        guard condition == present?.tag || (condition == "*" && present != nil) else {
            return Answer(status: 412, tag: present?.tag)
        }
        let photo = Photo(
            version: (present?.version ?? 0) + 1, contentType: contentType, bytes: bytes, replaced: condition)
        photos[id] = photo
        let answer = Answer(status: present == nil ? 201 : 200, tag: photo.tag)
        if var row = rows["Incident/\(id)"] {
            row.counter += 1
            row.fields["photo"] = .text(photo.tag)
            rows["Incident/\(id)"] = row
            _ = publish("Incident", id)
        }
        let change = JSONValue.object([
            "uri": .text("/photos/\(id)"), "etag": .text(photo.tag), "action": "refresh",
        ])
        owed.append(
            Push(
                bizType: "MSS_RESOURCES", id: "photo-\(id)-\(photo.version)",
                payload: Self.text(.object(["resources": .array([change])]))))
        return answer
    }

    // MARK: Start and pushes

    /// Adds rows that do not exist.
    mutating func seed(_ component: String, _ rows: [String: [String: JSONValue]]) {
        for (key, fields) in rows.sorted(by: { $0.key < $1.key }) where self.rows["\(component)/\(key)"] == nil {
            self.rows["\(component)/\(key)"] = Row(counter: 1, lastEdit: 1, fields: fields)
            _ = publish(component, key)
        }
    }

    /// Removes pushes that were sent to all users.
    mutating func removeSent(_ pushes: [Push]) { owed.removeAll { pushes.contains($0) } }
}
