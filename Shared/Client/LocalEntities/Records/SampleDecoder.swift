import Foundation
import MobileSync

/// The members that a type has decoded.
final class SampledMembers {
    private(set) var names: [String] = []
    private(set) var nullable: Set<String> = []
    private(set) var types: [String: AttributeType] = [:]

    func add(_ name: String) { if !names.contains(name) { names.append(name) } }
    func addNullable(_ name: String) { nullable.insert(name) }
    func set(_ type: AttributeType, of name: String) { types[name] = type }
}

/// Decodes a sample of a type and records its members.
struct SampleDecoder: Decoder {
    let members: SampledMembers
    /// The member with its second value; nil: all have their first one.
    let varied: String?

    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(SampleContainer<Key>(members: members, varied: varied))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw SampleFault.noMembers }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw SampleFault.noMembers }
}

/// The reason why a sample could not be decoded.
enum SampleFault: Error, CustomStringConvertible {
    case noMembers
    case noValue(of: String)
    case nested

    var description: String {
        switch self {
        case .noMembers: "it has no members by name"
        case .noValue(let type): "no value of \(type) is known; make the type CaseIterable or the member optional"
        case .nested: "it decodes nested or inherited containers"
        }
    }
}

private struct SampleContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let members: SampledMembers
    let varied: String?
    let codingPath: [any CodingKey] = []
    let allKeys: [Key] = []

    func contains(_ key: Key) -> Bool {
        members.add(key.stringValue)
        return true
    }

    func decodeNil(forKey key: Key) -> Bool {
        members.add(key.stringValue)
        members.addNullable(key.stringValue)
        return key.stringValue != varied
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        members.add(key.stringValue)
        let request = SampleRequest(isSecond: key.stringValue == varied)
        // The type of the attribute is known even when no value is.
        defer { members.set(request.type ?? .json, of: key.stringValue) }
        return try request.value(of: type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy: Nested.Type, forKey: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw SampleFault.nested }
    func nestedUnkeyedContainer(forKey: Key) throws -> any UnkeyedDecodingContainer { throw SampleFault.nested }
    func superDecoder() throws -> any Decoder { throw SampleFault.nested }
    func superDecoder(forKey: Key) throws -> any Decoder { throw SampleFault.nested }
}

/// Makes one of the two sample values of a type.
final class SampleRequest {
    private let isSecond: Bool
    /// The attribute type of the value; nil when it is coded in a container.
    private(set) var type: AttributeType?

    init(isSecond: Bool) { self.isSecond = isSecond }

    /// - Throws: `SampleFault` for a type without known values.
    func value<Value: Decodable>(of type: Value.Type) throws -> Value {
        if let (value, attributeType) = scalar(type), let value = value as? Value {
            self.type = attributeType
            return value
        }
        // Also records the attribute type of an enum with raw values.
        let decoded = Result { try Value(from: NestedSampleDecoder(request: self, isSecond: isSecond)) }
        if let cases = type as? any CaseIterable.Type, let value = Self.element(of: cases, isSecond) as? Value {
            return value
        }
        do {
            return try decoded.get()
        } catch {
            throw SampleFault.noValue(of: "\(type)")
        }
    }

    private static func element<Cases: CaseIterable>(of cases: Cases.Type, _ isSecond: Bool) -> Any? {
        isSecond ? cases.allCases.dropFirst().first : cases.allCases.first
    }

    private func scalar(_ type: Any.Type) -> (Any, AttributeType)? {
        let number = isSecond ? 1 : 0
        let byte: UInt8 = isSecond ? 1 : 0
        switch type {
        case is String.Type: return (isSecond ? "b" : "a", .text)
        case is Bool.Type: return (isSecond, .boolean)
        case is Double.Type: return (Double(number), .double)
        case is Float.Type: return (Float(number), .double)
        case is Decimal.Type: return (Decimal(number), .decimal)
        case is Date.Type: return (Date(timeIntervalSince1970: Double(number)), .date)
        case is Data.Type: return (Data([byte]), .bytes)
        case is [UInt8].Type: return ([byte], .bytes)
        case is UUID.Type: return (UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte)), .text)
        case is URL.Type: return (URL(filePath: isSecond ? "/b" : "/a"), .text)
        case is JSONValue.Type: return (JSONValue.text(isSecond ? "b" : "a"), .json)
        default: break
        }
        return (type as? any FixedWidthInteger.Type).map { (Self.integer($0, number), .integer) }
    }

    private static func integer<Integer: FixedWidthInteger>(_: Integer.Type, _ value: Int) -> Any { Integer(value) }

    /// A value inside the single container of another type.
    fileprivate func single<Value: Decodable>(_ type: Value.Type) throws -> Value { try value(of: type) }
}

/// Decodes a sample of a member's type.
private struct NestedSampleDecoder: Decoder {
    /// Gets the attribute type when the value is coded as a single value; nil below a container.
    let request: SampleRequest?
    let isSecond: Bool

    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(NestedSampleContainer<Key>(isSecond: isSecond))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { SampleList(isSecond: isSecond) }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        SampleSingle(request: request ?? SampleRequest(isSecond: isSecond))
    }
}

private struct SampleSingle: SingleValueDecodingContainer {
    let request: SampleRequest
    let codingPath: [any CodingKey] = []

    func decodeNil() -> Bool { false }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try request.single(type) }
}

private struct NestedSampleContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let isSecond: Bool
    let codingPath: [any CodingKey] = []
    /// The keys of a dictionary.
    var allKeys: [Key] { isSecond ? [Key(stringValue: "b")].compactMap(\.self) : [] }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey: Key) -> Bool { true }
    func decode<Value: Decodable>(_ type: Value.Type, forKey: Key) throws -> Value {
        try SampleRequest(isSecond: isSecond).value(of: type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy: Nested.Type, forKey: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw SampleFault.nested }
    func nestedUnkeyedContainer(forKey: Key) throws -> any UnkeyedDecodingContainer { throw SampleFault.nested }
    func superDecoder() throws -> any Decoder { throw SampleFault.nested }
    func superDecoder(forKey: Key) throws -> any Decoder { throw SampleFault.nested }
}

/// A list: empty, or with one element. The element is a first value, so that a type can contain itself.
private struct SampleList: UnkeyedDecodingContainer {
    let isSecond: Bool
    let codingPath: [any CodingKey] = []
    private(set) var currentIndex = 0

    init(isSecond: Bool) { self.isSecond = isSecond }

    var count: Int? { isSecond ? 1 : 0 }
    var isAtEnd: Bool { currentIndex >= count ?? 0 }

    func decodeNil() -> Bool { false }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        return try SampleRequest(isSecond: false).value(of: type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { throw SampleFault.nested }
    func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { throw SampleFault.nested }
    func superDecoder() throws -> any Decoder { throw SampleFault.nested }
}
