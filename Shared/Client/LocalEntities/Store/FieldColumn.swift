import Foundation
import GRDB
import MobileSync

/// Encodes attributes as column values, plain or encrypted.
///
/// SQLite compares the stored values, so each type has one form: text, integer (dates in milliseconds, false and true
/// as 0 and 1), double, bytes; decimals as their digits; JSON as its text. An encrypted column has the same form as
/// bytes with a type letter in front.
enum FieldColumn {
    /// The column value of an attribute.
    static func value(of value: AttributeValue) throws(EntityError) -> DatabaseValue {
        switch value {
        case .null: .null
        case .text(let text): text.databaseValue
        case .integer(let number): number.databaseValue
        case .double(let number): number.databaseValue
        case .decimal(let number): "\(number)".databaseValue
        case .boolean(let flag): (flag ? 1 : 0).databaseValue
        case .date(let date): (AttributeValue.milliseconds(of: date) ?? 0).databaseValue
        case .bytes(let bytes): Data(bytes).databaseValue
        case .json(let json): String(decoding: try json.payload(), as: UTF8.self).databaseValue
        }
    }

    /// The attribute of a column value.
    ///
    /// - Throws: `EntityError.persistence` for a value that this library does not write.
    static func attribute(_ value: DatabaseValue, _ type: AttributeType) throws(EntityError) -> AttributeValue {
        switch (value.storage, type) {
        case (.null, _): return .null
        case (.string(let text), .text): return .text(text)
        case (.string(let text), .json): return .json(try JSONValue(payload: text.utf8))
        case (.int64(let number), .integer): return .integer(number)
        case (.int64(let number), .boolean): return .boolean(number != 0)
        case (.int64(let number), .date): return .moment(number)
        case (.int64(let number), .double): return .double(Double(number))
        case (.double(let number), .double): return .double(number)
        case (.blob(let data), .bytes): return .bytes([UInt8](data))
        case (.string(let text), .decimal): if let value = AttributeValue.decimal(text) { return value }
        default: break
        }
        throw EntityError(
            .persistence, "a column has a value that does not match its attribute of type \(type.rawValue)")
    }

    // MARK: Encryption

    /// The context with which a value is encrypted; it can be decrypted only for the same context.
    static func place(_ typeName: String, _ attributeName: String, _ key: String) -> String {
        "\(typeName)/\(attributeName)/\(key)"
    }

    /// Encrypts a column value; null stays null.
    static func sealed(_ value: DatabaseValue, with cipher: StoreCipher, place: String) throws -> DatabaseValue {
        switch value.storage {
        case .null: .null
        case .string(let text): try cipher.seal(Data("t".utf8) + Data(text.utf8), for: place).databaseValue
        case .blob(let data): try cipher.seal(Data("b".utf8) + data, for: place).databaseValue
        case .int64(let number):
            try cipher.seal(
                Data("i".utf8) + withUnsafeBytes(of: number.bigEndian) { Data($0) }, for: place
            ).databaseValue
        case .double(let number):
            try cipher.seal(
                Data("d".utf8) + withUnsafeBytes(of: number.bitPattern.bigEndian) { Data($0) }, for: place
            ).databaseValue
        }
    }

    /// Decrypts a result of `sealed` for the same place.
    ///
    /// - Throws: any error for other data.
    static func opened(_ value: DatabaseValue, with cipher: StoreCipher, place: String) throws -> DatabaseValue {
        guard case .blob(let sealed) = value.storage else { return .null }
        let plain = try cipher.open(sealed, for: place)
        let rest = plain.dropFirst()
        func bits() -> UInt64 { rest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
        switch plain.first {
        case UInt8(ascii: "t"): return String(decoding: rest, as: UTF8.self).databaseValue
        case UInt8(ascii: "b"): return Data(rest).databaseValue
        case UInt8(ascii: "i"): return Int64(bitPattern: bits()).databaseValue
        case UInt8(ascii: "d"): return Double(bitPattern: bits()).databaseValue
        default: throw EntityError(.persistence, "an encrypted value has an unknown form")
        }
    }
}
