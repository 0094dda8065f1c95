import Foundation
import MobileSync

/// Converts records to attributes and back, through JSON.
enum RecordCoder {
    /// The attributes of a record in their stored form.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    static func fields<Record: EntityRecord>(of record: Record) throws(EntityError) -> [String: AttributeValue] {
        let type = Record.entityType
        let members: [String: JSONValue]
        do {
            let coded = try encoder(for: type).encode(record)
            members = try JSONValue(payload: coded).members ?? [:]
        } catch {
            throw error as? EntityError ?? EntityError(.wrongDataType, "\(type.name) cannot be encoded (\(error))")
        }
        var fields: [String: AttributeValue] = [:]
        for (name, member) in members {
            let attribute = try type.attribute(name)
            guard let value = value(of: member, for: attribute.type) else {
                throw EntityError(.wrongDataType, "\(type.name).\(name) must be of type \(attribute.type.rawValue)")
            }
            fields[name] = value
        }
        return fields
    }

    /// The record of a row's attributes.
    ///
    /// - Throws: `EntityError.wrongDataType` when the Swift type does not match the declaration.
    static func record<Record: EntityRecord>(
        _: Record.Type, of fields: [String: AttributeValue]
    ) throws(EntityError) -> Record {
        let members = fields.compactMapValues { value -> JSONValue? in
            switch value {
            case .null: nil
            // A `Decimal` is coded as a number.
            case .decimal(let number): .decimal(number)
            // The form of `[UInt8]`; the decoder below makes `Data` of it too.
            case .bytes(let bytes): .array(bytes.map { .integer(Int64($0)) })
            default: value.wire
            }
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let whole = try decoder.singleValueContainer().decode(Int64.self)
            return Date(timeIntervalSince1970: Double(whole) / 1_000)
        }
        decoder.dataDecodingStrategy = .custom { decoder in
            Data(try decoder.singleValueContainer().decode([UInt8].self))
        }
        do {
            return try decoder.decode(Record.self, from: Data(JSONValue.object(members).payload()))
        } catch {
            throw EntityError(
                .wrongDataType, "a row of \(Record.entityType.name) does not match its Swift type (\(error))")
        }
    }

    /// A value of a member in the stored form of its attribute; nil for null. A value that does not fit the attribute
    /// is returned as JSON, which no comparison accepts.
    static func attribute(of value: some Encodable, _ name: String, in type: EntityType) -> AttributeValue? {
        guard let coded = try? encoder(for: type).encode([value]), let list = try? JSONValue(payload: coded),
            case .array(let values) = list, let member = values.first, member != .null
        else { return nil }
        let declared = type.attributes.first { $0.name == name }
        return declared.flatMap { Self.value(of: member, for: $0.type) } ?? .json(member)
    }

    private static func encoder(for type: EntityType) -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { date, encoder in
            guard let whole = AttributeValue.milliseconds(of: date) else {
                throw EntityError(.wrongDataType, "\(type.name) has a date that cannot be stored in milliseconds")
            }
            var container = encoder.singleValueContainer()
            try container.encode(whole)
        }
        return encoder
    }

    private static func value(of member: JSONValue, for type: AttributeType) -> AttributeValue? {
        // `[UInt8]` is coded as an array, `Data` as Base64.
        if type == .bytes, case .array(let numbers) = member {
            let bytes = numbers.compactMap { $0.wholeNumber.flatMap { UInt8(exactly: $0) } }
            return bytes.count == numbers.count ? .bytes(bytes) : nil
        }
        return AttributeValue(wire: member, type: type)
    }
}
