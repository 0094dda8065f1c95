/// HTTP header fields. Names are compared without regard to case.
public struct ResourceHeaders: Sendable, Hashable {
    /// The fields in the order of the message.
    public private(set) var fields: [Field] = []

    /// One field.
    public struct Field: Sendable, Hashable {
        public let name: String
        public let value: String
    }

    /// Makes an empty set of fields.
    public init() {}

    /// Adds a field; fields of the same name stay.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// The value of the first field with this name; nil when there is none.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
