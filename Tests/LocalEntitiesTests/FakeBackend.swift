import MobileSync

@testable import LocalEntities

/// A tenant's backend with incidents and notes: it applies operations, and tells every change as an oplog.
struct FakeBackend {
    /// Fields by type and key.
    private(set) var rows: [String: [String: [String: JSONValue]]] = ["Incident": [:], "Note": [:]]
    /// Changes of all devices, in their order, by type.
    private(set) var oplogs: [String: [[UInt8]]] = ["Incident": [], "Note": []]
    private var counter: Int64 = 0
    private var applied: Set<String> = []

    /// Applies an operation and what goes with it, or refuses it all.
    mutating func answer(_ operation: SyncOperation, accepts: Bool) throws -> SyncOperationResult {
        guard accepts else {
            return SyncOperationResult(operationID: operation.id, isAccepted: false, code: 409, level: "ERROR")
        }
        var news: [JSONValue] = []
        try apply(operation, &news)
        return SyncOperationResult(
            operationID: operation.id, isAccepted: true,
            imported: try JSONValue.object(["entities": .array(news)]).bytes())
    }

    private mutating func apply(_ operation: SyncOperation, _ news: inout [JSONValue]) throws {
        guard applied.insert(operation.id).inserted else { throw EntityError(.persistence, "applied twice") }
        let fields = try JSONValue(parsing: operation.body).members?["fields"]?.members
        switch operation.name {
        case "create", "update": news.append(try set(operation.component, operation.key, fields ?? [:]))
        case "delete": news += try remove(operation.component, operation.key)
        default: break
        }
        for child in operation.children { try apply(child, &news) }
    }

    /// Somebody changes a row.
    @discardableResult
    mutating func set(_ type: String, _ key: String, _ fields: [String: JSONValue]) throws -> JSONValue {
        counter += 1
        rows[type, default: [:]][key] = fields
        return try tell(type, key, ["change": "U", "fields": .object(fields)])
    }

    /// Somebody deletes a row; an incident's notes go with it.
    @discardableResult
    mutating func remove(_ type: String, _ key: String) throws -> [JSONValue] {
        counter += 1
        rows[type]?[key] = nil
        var news = [try tell(type, key, ["change": "D"])]
        if type == "Incident" {
            for (note, fields) in (rows["Note"] ?? [:]).sorted(by: { $0.key < $1.key })
            where fields["incidentID"] == .text(key) { news += try remove("Note", note) }
        }
        return news
    }

    private mutating func tell(_ type: String, _ key: String, _ members: [String: JSONValue]) throws -> JSONValue {
        var members = members
        members["key"] = .text(key)
        members["component"] = .text(type)
        members["counter"] = .integer(counter)
        oplogs[type, default: []].append(try JSONValue.object(["entities": .array([.object(members)])]).bytes())
        return .object(members)
    }
}
