import Credentials
import NIOHTTP1
import SyncModel

/// The four headers of a signed request (H9), checked for their form.
struct SignatureHeaders: Hashable, Sendable {
    let keyID: String
    /// The text as received, because the signature covers the text; the same holds for `nonceText`.
    let timestampText: String
    let timestamp: WallTime
    let nonceText: String
    let nonce: [UInt8]
    let code: [UInt8]

    /// The value is nil when the request has none of the headers.
    ///
    /// - Throws: 401 when some are missing or have a wrong form.
    init?(_ head: HTTPRequestHead) throws(EarlyRefusal) {
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
        else { throw Self.refused("X-MSS-Timestamp is not a time; send milliseconds since 1970, digits only.") }
        timestamp = WallTime(milliseconds: milliseconds)
        guard let nonce = HexText.bytes(of: nonceText), RequestSignature.nonceBytes.contains(nonce.count) else {
            throw Self.refused("X-MSS-Nonce is not a nonce; send 16 to 32 random bytes in hex, new ones for each call.")
        }
        self.nonce = nonce
        guard let code = HexText.bytes(of: values[3]), code.count == RequestSignature.bytes else {
            throw Self.refused("X-MSS-Signature is not an HMAC-SHA256; send its 32 bytes in hex.")
        }
        self.code = code
    }

    private static func refused(_ detail: String) -> EarlyRefusal {
        EarlyRefusal(answer: .refusal(.unauthorized, detail))
    }
}

extension UInt8 {
    /// Whether it is an ASCII digit.
    fileprivate static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

/// Checks the signature of a request against the backend keys (SEC6).
///
/// It does the same work for unknown and for known keys, so that its run time reveals no key ids.
struct SignatureCheck: Sendable {
    /// The result of a check.
    enum Outcome: Hashable, Sendable {
        case signed(by: AppKey, of: InstanceID)
        /// The key is unknown or the signature is wrong. Responses must not say which.
        case wrong
        /// This process lacks the key that the secret is sealed with.
        case unreadable
    }

    let directory: any CallerLookup
    let keys: OpenedKeys

    /// Checks the signature only, not the timestamp or the nonce.
    func outcome(of headers: SignatureHeaders, over signature: RequestSignature) -> Outcome {
        // For known and unknown keys alike: one successful lookup, one failed lookup, and one comparison of signatures.
        let some = directory.someBackendKey
        let none = "x" + some.dropFirst()
        let named = directory.instance(ofBackendKey: headers.keyID)
        let isThere = named != nil
        let other = directory.instance(ofBackendKey: isThere ? none : some)
        let keyID = isThere ? headers.keyID : some
        guard let instance = named ?? other,
            let key = instance.keys.first(where: { $0.id == keyID && $0.purpose == .backend })
        else { return .wrong }
        guard let secret = keys.secret(of: key, instance.id) else { return .unreadable }
        let isRight = signature.isValid(headers.code, with: secret)
        return isThere && isRight ? .signed(by: key, of: instance.id) : .wrong
    }
}
