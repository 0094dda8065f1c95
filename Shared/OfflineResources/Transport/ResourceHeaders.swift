/// Header fields, whose names do not depend on case.
public struct ResourceHeaders: Sendable, Hashable {
    /// In the order of the message.
    public private(set) var fields: [Field] = []

    /// One field.
    public struct Field: Sendable, Hashable {
        public let name: String
        public let value: String
    }

    /// Without any.
    public init() {}

    /// Adds a field, beside those of the same name.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// The first field of this name.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
