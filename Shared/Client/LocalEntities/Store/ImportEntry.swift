import MobileSync

/// One row of an entity oplog.
struct ImportEntry: Sendable, Hashable {
    /// The entity type's name: the Sync ID, or the entry's own `component`; a parent's import can contain its children.
    let component: String
    let key: String
    let isDeleted: Bool
    /// The server's counter, which identifies older versions; nil: it has none, and the order of the oplogs decides.
    let counter: Int64?
    /// The attributes; attributes that are missing stay unchanged.
    let fields: [String: JSONValue]

    /// Decodes the rows of a payload: an object with `entities`, or one row alone.
    ///
    /// - Throws: `EntityError.wrongDataType` for any other payload; nothing of it is imported then.
    static func all(in payload: some Sequence<UInt8>, component: String) throws(EntityError) -> [ImportEntry] {
        guard let members = try JSONValue(payload: payload).members else {
            throw EntityError(.wrongDataType, "an import of \(component) is not a JSON object")
        }
        guard let list = members["entities"] else { return [try entry(members, component)] }
        guard case .array(let values) = list else {
            throw EntityError(.wrongDataType, "the member entities in an import of \(component) is not a list")
        }
        var entries: [ImportEntry] = []
        for value in values {
            guard let members = value.members else {
                throw EntityError(.wrongDataType, "an entity in an import of \(component) is not a JSON object")
            }
            entries.append(try entry(members, component))
        }
        return entries
    }

    private static func entry(
        _ members: [String: JSONValue], _ component: String
    ) throws(EntityError) -> ImportEntry {
        let wrong = EntityError(
            .wrongDataType, "an entity in an import of \(component) needs key and change of the right type")
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
