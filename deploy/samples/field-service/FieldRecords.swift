import Foundation
import LocalEntities

/// The tenant's data: incidents and technicians with their versions, photos with their tags, the responses that were
/// sent, and the pushes that are still to be sent. A pure value.
struct FieldRecords: Codable, Sendable {
    /// One incident or technician.
    struct Row: Codable, Sendable {
        /// Rises with each change.
        var counter: Int64
        var fields: [String: JSONValue]
    }

    /// One photo.
    struct Photo: Codable, Sendable {
        var version: Int
        var contentType: String
        var bytes: Data

        /// Its entity tag.
        var tag: String { "\"v\(version)\"" }
    }

    /// The response to a request, stored for a repeat of the request.
    struct Answer: Codable, Sendable, Hashable {
        var status: Int
        var body = ""
        var tag: String?
    }

    /// A push to all users.
    struct Push: Codable, Sendable, Hashable {
        var bizType: String
        /// Unique in a channel, so that a repeat has no effect.
        var id: String
        var payload: String
    }

    /// The largest size of a row's fields, in UTF-16 units.
    private static let mostUnits = 3_000

    /// By `component/key`.
    private(set) var rows: [String: Row] = [:]
    private(set) var photos: [String: Photo] = [:]
    /// By idempotency key.
    private(set) var answers: [String: Answer] = [:]
    /// The pushes to send, the oldest first.
    private(set) var owed: [Push] = []

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
        let place = "\(call.component)/\(call.entityKey)"
        let name = "\(call.component.lowercased()) \(call.entityKey)"
        guard ["Incident", "Technician"].contains(call.component) else {
            return Self.refusal(404, "there is no component \(call.component)")
        }
        guard case .object(let fields)? = call.member("fields") else { return Self.refusal(400, "there are no fields") }
        // The fields must fit in a push.
        guard Self.text(.object(fields)).utf16.count <= Self.mostUnits else {
            return Self.refusal(413, "\(name) is too long")
        }
        switch (call.operation, rows[place]) {
        case ("create", nil): rows[place] = Row(counter: 1, fields: fields)
        case ("create", _?): return Self.refusal(409, "\(name) exists already")
        case ("update", var row?):
            // An update must be based on the newest version.
            guard call.member("counter") == .integer(row.counter) else {
                return Self.refusal(409, "another user has changed \(name)")
            }
            var changed = Set(fields.keys)
            if case .array(let names)? = call.member("changed") {
                changed.formIntersection(names.compactMap { if case .text(let name) = $0 { name } else { nil } })
            }
            // Only the backend sets the photo.
            for name in changed where name != "photo" { row.fields[name] = fields[name] }
            row.counter += 1
            rows[place] = row
        case ("update", nil): return Self.refusal(404, "there is no \(name)")
        default: return Self.refusal(405, "there is no operation \(call.operation)")
        }
        let state = publish(call.component, call.entityKey)
        return Answer(status: 200, body: #"{"import":\#(state)}"#)
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

    /// Adds or replaces a photo.
    ///
    /// - Parameters:
    ///   - condition: `If-Match`; nil: the sender knows of no photo.
    ///   - key: the `Idempotency-Key` of the request.
    mutating func putPhoto(
        _ id: String, _ bytes: Data, contentType: String, condition: String?, key: String
    ) -> Answer {
        if let known = answers[key] { return known }
        let present = photos[id]
        guard condition == present?.tag || (condition == "*" && present != nil) else {
            return Answer(status: 412, tag: present?.tag)
        }
        let photo = Photo(version: (present?.version ?? 0) + 1, contentType: contentType, bytes: bytes)
        photos[id] = photo
        let answer = Answer(status: present == nil ? 201 : 200, tag: photo.tag)
        answers[key] = answer
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
            self.rows["\(component)/\(key)"] = Row(counter: 1, fields: fields)
            _ = publish(component, key)
        }
    }

    /// Removes pushes that were sent to all users.
    mutating func removeSent(_ pushes: [Push]) { owed.removeAll { pushes.contains($0) } }
}
