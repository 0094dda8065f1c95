/// Derives the JSON Schema of a value from its encoding, so that the description always matches the answers. A member
/// that is encoded with `encodeIfPresent` is optional (C11).
final class SchemaEncoder: Encoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    /// The schema of the values that are encoded so far.
    fileprivate(set) var schema: [String: Any] = [:]

    /// The schema of an example in which every member is present.
    static func schema(of example: any Encodable) -> [String: Any] {
        if let name = primitive(type(of: example)) { return ["type": name] }
        if let list = example as? [any Encodable] {
            return ["type": "array", "items": list.first.map { schema(of: $0) } ?? [:]]
        }
        if let members = example as? any StringKeyed {
            return [
                "type": "object", "additionalProperties": members.anyValue.map { schema(of: $0) } ?? [:],
            ]
        }
        let encoder = SchemaEncoder()
        try? example.encode(to: encoder)
        return encoder.schema
    }

    fileprivate static func primitive(_ type: Any.Type) -> String? {
        switch type {
        case is Bool.Type: "boolean"
        case is String.Type: "string"
        case is Double.Type: "number"
        case is Int.Type, is Int64.Type, is Int32.Type, is UInt32.Type: "integer"
        default: nil
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(SchemaMembers(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { SchemaElements(encoder: self) }

    func singleValueContainer() -> any SingleValueEncodingContainer { SchemaValue(encoder: self) }

    fileprivate func addMember(_ member: String, _ schema: [String: Any], isRequired: Bool) {
        var properties = self.schema["properties"] as? [String: Any] ?? [:]
        properties[member] = schema
        self.schema["type"] = "object"
        self.schema["properties"] = properties
        if isRequired {
            self.schema["required"] = ((self.schema["required"] as? [String] ?? []) + [member]).sorted()
        }
    }
}

/// A dictionary, whose keys are data and not member names.
private protocol StringKeyed {
    var anyValue: (any Encodable)? { get }
}

extension Dictionary: StringKeyed where Key == String, Value: Encodable {
    fileprivate var anyValue: (any Encodable)? { values.first }
}

private struct SchemaMembers<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: SchemaEncoder
    let codingPath: [any CodingKey] = []

    private func addMember(_ key: Key, _ type: Any.Type, isRequired: Bool) {
        encoder.addMember(
            key.stringValue, ["type": SchemaEncoder.primitive(type) ?? "object"], isRequired: isRequired)
    }

    func encodeNil(forKey key: Key) { encoder.addMember(key.stringValue, ["type": "null"], isRequired: true) }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) {
        encoder.addMember(key.stringValue, SchemaEncoder.schema(of: value), isRequired: true)
    }

    func encodeIfPresent(_ value: Bool?, forKey key: Key) { addMember(key, Bool.self, isRequired: false) }
    func encodeIfPresent(_ value: String?, forKey key: Key) { addMember(key, String.self, isRequired: false) }
    func encodeIfPresent(_ value: Double?, forKey key: Key) { addMember(key, Double.self, isRequired: false) }
    func encodeIfPresent(_ value: Int?, forKey key: Key) { addMember(key, Int.self, isRequired: false) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) { addMember(key, Int64.self, isRequired: false) }

    func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) {
        encoder.addMember(
            key.stringValue, value.map { SchemaEncoder.schema(of: $0) } ?? ["type": "object"], isRequired: false)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { encoder.container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder.unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

private struct SchemaElements: UnkeyedEncodingContainer {
    let encoder: SchemaEncoder
    let codingPath: [any CodingKey] = []
    private(set) var count = 0

    init(encoder: SchemaEncoder) {
        self.encoder = encoder
        encoder.schema = ["type": "array"]
    }

    mutating func encodeNil() {}

    mutating func encode<Value: Encodable>(_ value: Value) {
        count += 1
        encoder.schema["items"] = SchemaEncoder.schema(of: value)
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        encoder.container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder }
}

private struct SchemaValue: SingleValueEncodingContainer {
    let encoder: SchemaEncoder
    let codingPath: [any CodingKey] = []

    func encodeNil() {}

    func encode<Value: Encodable>(_ value: Value) { encoder.schema = SchemaEncoder.schema(of: value) }
}
