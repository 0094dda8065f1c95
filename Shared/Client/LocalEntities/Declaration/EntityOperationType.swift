import MobileSync

/// The declaration of an operation of an entity type, other than create, update and delete.
public struct EntityOperationType: Sendable, Hashable {
    /// The name in the backend; not `create`, `update`, `delete` or `children`.
    public let name: String
    /// The parameters; their names are unique.
    public let parameters: [EntityAttribute]

    /// Declares an operation.
    public init(_ name: String, parameters: [EntityAttribute] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// Converts arguments to the JSON that the backend receives.
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
