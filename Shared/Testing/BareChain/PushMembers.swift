import NIOCore

/// The members of a push call that the bare chain needs.
///
/// It reads only the compact JSON of the load generator: the members in this order, without white space around them
/// and without escapes. The service reads any JSON.
struct PushMembers: Hashable {
    let user: String
    let thirdMessageID: String
    let payload: [UInt8]

    /// Reads the body of a call. Returns nil if a member is missing.
    init?(_ body: ByteBuffer) {
        let found = body.withUnsafeReadableBytes { bytes -> (String, String, [UInt8])? in
            var rest = bytes[...]
            guard let user = Self.value(Self.linkToken, in: &rest), let id = Self.value(Self.thirdMsgID, in: &rest),
                let payload = Self.value(Self.payload, in: &rest)
            else { return nil }
            return (String(decoding: user, as: UTF8.self), String(decoding: id, as: UTF8.self), Array(payload))
        }
        guard let found else { return nil }
        (user, thirdMessageID, payload) = found
    }

    private static let linkToken = Array(#""linkToken":""#.utf8)
    private static let thirdMsgID = Array(#""thirdMsgId":""#.utf8)
    private static let payload = Array(#""payload":""#.utf8)

    /// The text of a member. Afterwards `rest` begins behind it.
    private static func value(_ member: [UInt8], in rest: inout Slice<UnsafeRawBufferPointer>) -> Slice<
        UnsafeRawBufferPointer
    >? {
        var start = rest.startIndex
        while start + member.count <= rest.endIndex {
            guard rest[start] == member[0], rest[start..<(start + member.count)].elementsEqual(member) else {
                start += 1
                continue
            }
            let value = rest[(start + member.count)...].prefix { $0 != UInt8(ascii: "\"") }
            rest = rest[value.endIndex...]
            return value
        }
        return nil
    }
}
