public import Foundation

/// A JSON value. Numbers keep 38 digits.
public enum ResourceValue: Sendable, Hashable, Codable {
    case null
    case bool(Bool)
    case number(Decimal)
    case text(String)
    case list([ResourceValue])
    case object([String: ResourceValue])

    /// Parses JSON; nil when it is invalid, nested too deeply, or has a number that cannot be represented.
    public static func parse(_ json: [UInt8]) -> ResourceValue? {
        try? JSONDecoder().decode(ResourceValue.self, from: Data(json))
    }

    /// Encodes the value as JSON, with members in alphabetical order.
    ///
    /// - Throws: `ResourceError.invalidArgument` for NaN.
    public func json() throws(ResourceError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return [UInt8](try encoder.encode(self))
        } catch {
            throw ResourceError(.invalidArgument, "a value cannot be encoded as JSON (\(error))")
        }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .bool(flag)
        } else if let number = try? container.decode(Decimal.self) {
            self = .number(number)
        } else if let list = try? container.decode([ResourceValue].self) {
            self = .list(list)
        } else {
            self = .object(try container.decode([String: ResourceValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let flag): try container.encode(flag)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let members): try container.encode(members)
        }
    }

    /// A member of an object; dots lead to an inner member: `address.city`. The value is nil when there is none.
    public subscript(_ property: String) -> ResourceValue? {
        guard case .object(let members) = self else { return nil }
        if let value = members[property] { return value }
        let parts = property.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let inner = members[String(parts[0])] else { return nil }
        return inner[String(parts[1])]
    }

    /// Applies a JSON merge patch (RFC 7396): null removes a member.
    func merged(with patch: ResourceValue) -> ResourceValue {
        guard case .object(let changes) = patch else { return patch }
        var members: [String: ResourceValue] = [:]
        if case .object(let present) = self { members = present }
        for (name, change) in changes {
            members[name] = change == .null ? nil : (members[name] ?? .null).merged(with: change)
        }
        return .object(members)
    }
}
