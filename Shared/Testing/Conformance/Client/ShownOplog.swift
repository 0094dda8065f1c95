import Foundation

/// One output line of a client program: an oplog that its app received.
struct ShownOplog: Decodable, Hashable, Sendable {
    let bizType: String
    let id: Int64
    let payload: [UInt8]
    /// Number of the hand-out. 1 if the line does not contain it.
    let attempt: Int
    /// The recalled oplog. The value is nil for data.
    let recalls: Int64?

    private enum Member: String, CodingKey {
        case bizType, oplogId, payload, binary, text, base64, attempt, recalls
    }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Member.self)
        bizType = try members.decode(String.self, forKey: .bizType)
        id = try Self.integer(members, .oplogId)
        payload = try Self.payload(members)
        attempt = try members.decodeIfPresent(Int.self, forKey: .attempt) ?? 1
        recalls = members.contains(.recalls) ? try Self.integer(members, .recalls) : nil
    }

    /// A number, or its digits as text, because the numbers of some languages cannot hold all ids.
    private static func integer(_ members: KeyedDecodingContainer<Member>, _ member: Member) throws -> Int64 {
        if let number = try? members.decode(Int64.self, forKey: member) { return number }
        guard let number = Int64(try members.decode(String.self, forKey: member)) else {
            throw DecodingError.dataCorruptedError(forKey: member, in: members, debugDescription: "no integer")
        }
        return number
    }

    /// `text`, or `base64`, or `payload`, which is Base64 if `binary` is true.
    private static func payload(_ members: KeyedDecodingContainer<Member>) throws -> [UInt8] {
        if let text = try members.decodeIfPresent(String.self, forKey: .text) { return Array(text.utf8) }
        let isBinary = try members.decodeIfPresent(Bool.self, forKey: .binary) ?? false
        let encoded = try members.decodeIfPresent(String.self, forKey: .base64)
        let payload = try members.decodeIfPresent(String.self, forKey: .payload) ?? ""
        guard encoded != nil || isBinary else { return Array(payload.utf8) }
        guard let bytes = Data(base64Encoded: encoded ?? payload) else {
            throw DecodingError.dataCorruptedError(forKey: .base64, in: members, debugDescription: "no Base64")
        }
        return [UInt8](bytes)
    }
}
