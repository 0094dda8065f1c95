/// The value of a switch: any JSON value.
public enum SwitchValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A JSON number; integers are exact up to 2^53.
    case number(Double)
    case text(String)
    case array([SwitchValue])
    case object([String: SwitchValue])
}

extension SwitchValue: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let bool = try? container.decode(Bool.self) {
            self = .bool(bool)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let array = try? container.decode([SwitchValue].self) {
            self = .array(array)
        } else {
            self = .object(try container.decode([String: SwitchValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let bool): try container.encode(bool)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .array(let array): try container.encode(array)
        case .object(let object): try container.encode(object)
        }
    }
}
