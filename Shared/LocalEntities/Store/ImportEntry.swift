/// One row of an entity oplog: what the server says of it.
struct ImportEntry: Sendable, Hashable {
    /// The entity type's name: the Sync ID's, unless the entry has its own, as a parent's import may for children.
    let component: String
    let key: String
    let isDeleted: Bool
    /// The server's, by which an older version is known; nil: it has none, and the order of the oplogs counts.
    let counter: Int64?
    /// Attributes that are left out stay as they are.
    let fields: [String: JSONValue]

    /// The rows of a payload: an object with `entities`, or one row itself.
    ///
    /// - Throws: `EntityError.wrongDataType` for a payload that is neither; nothing of it is taken then.
    static func all(in payload: some Sequence<UInt8>, component: String) throws(EntityError) -> [ImportEntry] {
        guard let members = try JSONValue(parsing: payload).members else {
            throw EntityError(.wrongDataType, "an import of \(component) is no object")
        }
        guard let list = members["entities"] else { return [try entry(members, component)] }
        guard case .array(let values) = list else {
            throw EntityError(.wrongDataType, "entities in an import of \(component) is no list")
        }
        var entries: [ImportEntry] = []
        for value in values {
            guard let members = value.members else {
                throw EntityError(.wrongDataType, "an entity in an import of \(component) is no object")
            }
            entries.append(try entry(members, component))
        }
        return entries
    }

    private static func entry(
        _ members: [String: JSONValue], _ component: String
    ) throws(EntityError) -> ImportEntry {
        let wrong = EntityError(
            .wrongDataType, "an entity in an import of \(component) lacks key or change, or has them of another type")
        let key = members["key"].flatMap { $0.string ?? $0.wholeNumber.map(String.init) }
        let counter = members["counter"] ?? .null
        guard let key, let change = members["change"]?.string, change == "U" || change == "D" else { throw wrong }
        guard counter == .null || counter.wholeNumber != nil else { throw wrong }
        guard let fields = (members["fields"] ?? .object([:])).members else { throw wrong }
        return ImportEntry(
            component: members["component"]?.string ?? component, key: key, isDeleted: change == "D",
            counter: counter.wholeNumber, fields: fields)
    }
}
