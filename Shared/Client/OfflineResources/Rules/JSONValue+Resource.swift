import Foundation
public import MobileSync

/// JSON with the errors and the rules of this library.
extension JSONValue {
    /// Parses JSON; nil when it is invalid or nested too deeply.
    static func parse(_ json: [UInt8]) -> JSONValue? { try? JSONValue(parsing: json) }

    /// Encodes the value as JSON, with members in alphabetical order.
    ///
    /// - Throws: `ResourceError.invalidArgument` for a number that is not finite.
    func json() throws(ResourceError) -> [UInt8] {
        do {
            return try bytes()
        } catch {
            throw ResourceError(.invalidArgument, error.message)
        }
    }

    /// A member of an object; dots lead to an inner member: `address.city`. The value is nil when there is none.
    public subscript(_ property: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        if let value = members[property] { return value }
        let parts = property.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let inner = members[String(parts[0])] else { return nil }
        return inner[String(parts[1])]
    }

    /// The number with all its digits; nil for anything else.
    var exactNumber: Decimal? {
        switch self {
        case .integer(let value): Decimal(value)
        case .number(let value): Decimal(string: "\(value)")
        case .decimal(let value): value
        default: nil
        }
    }

    /// Applies a JSON merge patch (RFC 7396): null removes a member.
    func merged(with patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members: [String: JSONValue] = [:]
        if case .object(let present) = self { members = present }
        for (name, change) in changes {
            members[name] = change == .null ? nil : (members[name] ?? .null).merged(with: change)
        }
        return .object(members)
    }
}
