import Credentials
import NIOHTTP1
import SyncModel

/// The four headers of a signed request (spec H9), each of the form that it must have.
struct SignatureHeaders: Hashable, Sendable {
    let keyID: String
    /// As it was sent, because that is what is signed; so is the nonce's.
    let timestampText: String
    let timestamp: WallTime
    let nonceText: String
    let nonce: [UInt8]
    let code: [UInt8]

    /// Nil when the request has none of them.
    ///
    /// - Throws: 401 when one is missing, or not of its form.
    init?(_ head: HTTPRequestHead) throws(HeadRefusal) {
        var values: [String] = []
        var missing: [String] = []
        for name in RequestSignature.headerNames {
            if let value = head.value(of: name), !value.isEmpty {
                values.append(value)
            } else {
                missing.append(name)
            }
        }
        guard missing.count < RequestSignature.headerNames.count else { return nil }
        guard missing.isEmpty else {
            throw Self.refused("\(missing.joined(separator: ", ")): missing; a signed call has all four headers.")
        }
        (keyID, timestampText, nonceText) = (values[0], values[1], values[2])
        guard timestampText.utf8.count <= 15, timestampText.utf8.allSatisfy(UInt8.isDigit),
            let milliseconds = Int64(timestampText)
        else { throw Self.refused("X-MSS-Timestamp is no time; send milliseconds since 1970, digits alone.") }
        timestamp = WallTime(milliseconds: milliseconds)
        guard let nonce = HexText.bytes(of: nonceText), RequestSignature.nonceBytes.contains(nonce.count) else {
            throw Self.refused("X-MSS-Nonce is no nonce; send 16 to 32 random bytes as hex, new ones for each call.")
        }
        self.nonce = nonce
        guard let code = HexText.bytes(of: values[3]), code.count == RequestSignature.bytes else {
            throw Self.refused("X-MSS-Signature is no HMAC-SHA256; send its 32 bytes as hex.")
        }
        self.code = code
    }

    private static func refused(_ detail: String) -> HeadRefusal {
        HeadRefusal(answer: .refusal(.unauthorized, detail))
    }
}

extension UInt8 {
    /// Whether it is an ASCII digit.
    fileprivate static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
