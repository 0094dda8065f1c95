import MobileSync

@testable import LocalEntities

/// A tenant's backend with incidents and notes: it applies operations, and pushes every change as an oplog.
struct FakeBackend {
    /// Fields, by type and key.
    private(set) var rows: [String: [String: [String: JSONValue]]] = ["Incident": [:], "Note": [:]]
    /// Changes of all devices in order, by type.
    private(set) var oplogs: [String: [[UInt8]]] = ["Incident": [], "Note": []]
    private var counter: Int64 = 0
    private var applied: Set<String> = []

    /// Applies an operation with its children, or refuses all of it.
    mutating func answer(_ operation: SyncOperation, accepts: Bool) throws -> SyncOperationResult {
        guard accepts else {
            return SyncOperationResult(operationID: operation.id, isAccepted: false, code: 409, level: "ERROR")
        }
        var rowChanges: [JSONValue] = []
        try apply(operation, &rowChanges)
        return SyncOperationResult(
            operationID: operation.id, isAccepted: true,
            imported: try JSONValue.object(["entities": .array(rowChanges)]).bytes())
    }

    private mutating func apply(_ operation: SyncOperation, _ rowChanges: inout [JSONValue]) throws {
        guard applied.insert(operation.id).inserted else { throw EntityError(.persistence, "applied twice") }
        let fields = try JSONValue(parsing: operation.body).members?["fields"]?.members
        switch operation.name {
        case "create", "update": rowChanges.append(try set(operation.component, operation.key, fields ?? [:]))
        case "delete": rowChanges += try remove(operation.component, operation.key)
        default: break
        }
        for child in operation.children { try apply(child, &rowChanges) }
    }

    /// Changes a row, as another user.
    @discardableResult
    mutating func set(_ type: String, _ key: String, _ fields: [String: JSONValue]) throws -> JSONValue {
        counter += 1
        rows[type, default: [:]][key] = fields
        return try appendOplog(type, key, ["change": "U", "fields": .object(fields)])
    }

    /// Deletes a row, as another user; the notes of an incident are deleted too.
    @discardableResult
    mutating func remove(_ type: String, _ key: String) throws -> [JSONValue] {
        counter += 1
        rows[type]?[key] = nil
        var rowChanges = [try appendOplog(type, key, ["change": "D"])]
        if type == "Incident" {
            for (note, fields) in (rows["Note"] ?? [:]).sorted(by: { $0.key < $1.key })
            where fields["incidentID"] == .text(key) { rowChanges += try remove("Note", note) }
        }
        return rowChanges
    }

    private mutating func appendOplog(_ type: String, _ key: String, _ members: [String: JSONValue]) throws -> JSONValue
    {
        var members = members
        members["key"] = .text(key)
        members["component"] = .text(type)
        members["counter"] = .integer(counter)
        oplogs[type, default: []].append(try JSONValue.object(["entities": .array([.object(members)])]).bytes())
        return .object(members)
    }
}
