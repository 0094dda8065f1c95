/// An operation of an entity type beside create, update and delete, as declared.
public struct EntityOperationType: Sendable, Hashable {
    /// What the backend knows it by; not `create`, `update`, `delete` or `children`.
    public let name: String
    /// What it takes; names are unique.
    public let parameters: [EntityAttribute]

    /// An operation with its parameters.
    public init(_ name: String, parameters: [EntityAttribute] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// The arguments as they go to the backend.
    ///
    /// - Throws: `EntityError`: `noSuchParameter`, `wrongDataType`.
    func checked(_ arguments: [String: AttributeValue]) throws(EntityError) -> [String: JSONValue] {
        for name in arguments.keys where !parameters.contains(where: { $0.name == name }) {
            throw EntityError(.noSuchParameter, "the operation \(self.name) has no parameter \(name)")
        }
        var wire: [String: JSONValue] = [:]
        for parameter in parameters {
            wire[parameter.name] = try parameter.checked(arguments[parameter.name] ?? .null, of: name).wire
        }
        return wire
    }
}
