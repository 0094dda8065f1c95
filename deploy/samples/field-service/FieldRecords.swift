import Foundation
import LocalEntities

/// What the tenant has: incidents and technicians with their versions, photos with their tags, the answers that it has
/// given, and the pushes that it still owes; pure.
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

    /// What was said to a request, for when it comes again.
    struct Answer: Codable, Sendable, Hashable {
        var status: Int
        var body = ""
        var tag: String?
    }

    /// Something that users are to be told.
    struct Push: Codable, Sendable, Hashable {
        var bizType: String
        /// Unique in a channel: a repeat does no harm.
        var id: String
        var payload: String
    }

    /// UTF-16 units of a row's fields at the most.
    private static let mostUnits = 3_000

    /// By `component/key`.
    private(set) var rows: [String: Row] = [:]
    private(set) var photos: [String: Photo] = [:]
    /// By idempotency key.
    private(set) var answers: [String: Answer] = [:]
    /// The oldest first.
    private(set) var owed: [Push] = []

    // MARK: Operations

    /// Does an operation once, however often it comes.
    ///
    /// - Parameter key: the call's `Idempotency-Key`.
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
            return Self.refusal(404, "there is nothing called \(call.component) here")
        }
        guard case .object(let fields)? = call.member("fields") else { return Self.refusal(400, "there are no fields") }
        // What is told of a row has to fit a push.
        guard Self.text(.object(fields)).utf16.count <= Self.mostUnits else {
            return Self.refusal(413, "\(name) is too long")
        }
        switch (call.operation, rows[place]) {
        case ("create", nil): rows[place] = Row(counter: 1, fields: fields)
        case ("create", _?): return Self.refusal(409, "\(name) is there already")
        case ("update", var row?):
            // Whoever has not seen the newest version does not overwrite it.
            guard call.member("counter") == .integer(row.counter) else {
                return Self.refusal(409, "somebody else has changed \(name)")
            }
            var changed = Set(fields.keys)
            if case .array(let names)? = call.member("changed") {
                changed.formIntersection(names.compactMap { if case .text(let name) = $0 { name } else { nil } })
            }
            // Which photo there is, only the backend says.
            for name in changed where name != "photo" { row.fields[name] = fields[name] }
            row.counter += 1
            rows[place] = row
        case ("update", nil): return Self.refusal(404, "there is no \(name)")
        default: return Self.refusal(405, "\(call.operation) is not done here")
        }
        let state = publish(call.component, call.entityKey)
        return Answer(status: 200, body: #"{"import":\#(state)}"#)
    }

    private static func refusal(_ code: Int, _ message: String) -> Answer {
        Answer(status: code, body: #"{"code":\#(code),"message":"\#(message)"}"#)
    }

    /// Has everybody told how a row is now.
    ///
    /// - Returns: the same as JSON.
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

    /// Replaces a photo, or attaches the first one.
    ///
    /// - Parameters:
    ///   - condition: `If-Match`; nil: whoever sends it knows of none.
    ///   - key: the request's `Idempotency-Key`.
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

    // MARK: Beginning and telling

    /// Puts rows there that nobody has made.
    mutating func seed(_ component: String, _ rows: [String: [String: JSONValue]]) {
        for (key, fields) in rows.sorted(by: { $0.key < $1.key }) where self.rows["\(component)/\(key)"] == nil {
            self.rows["\(component)/\(key)"] = Row(counter: 1, fields: fields)
            _ = publish(component, key)
        }
    }

    /// Everybody has been told these.
    mutating func noteTold(_ pushes: [Push]) { owed.removeAll { pushes.contains($0) } }
}
