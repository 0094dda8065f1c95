import Crypto
import Foundation

/// Codes of a second factor: six digits computed from a secret and the time (RFC 6238 with its defaults: SHA-1,
/// 30 seconds).
enum TimeCode {
    private static let step: Int64 = 30

    /// The time step that a code belongs to: the current, the previous or the next one; nil for any other code.
    ///
    /// - Parameters:
    ///   - code: as typed; spaces are ignored.
    ///   - time: seconds since 1970.
    static func step(of code: String, secret: [UInt8], at time: Int64) -> Int64? {
        let typed = code.filter { $0 != " " }
        return [0, -1, 1].map { time / step + $0 }.first { self.code(secret, step: $0) == typed }
    }

    /// The code of a step.
    static func code(_ secret: [UInt8], step: Int64) -> String {
        let counter = withUnsafeBytes(of: step.bigEndian) { Array($0) }
        let mac = Array(
            HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: secret)))
        let offset = Int(mac[mac.count - 1] & 15)
        let number = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
        let digits = String(number % 1_000_000)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }

    /// The secret in the form for authenticator apps (RFC 4648, Base32 without padding).
    static func text(of secret: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        var text = ""
        var bits: UInt32 = 0
        var count = 0
        for byte in secret {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 5 {
                count -= 5
                text.append(alphabet[Int(bits >> UInt32(count)) & 31])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << UInt32(5 - count)) & 31]) }
        return text
    }
}

/// Encrypts the secrets of second factors for the database, with a key that only consoles have (SEC16).
struct SecondFactorSeal: Sendable {
    private let key: SymmetricKey

    /// The value is nil when the text is not Base64 of 32 bytes.
    init?(text: String) {
        guard let bytes = Data(base64Encoded: text.trimmed), bytes.count == 32 else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// Seals a secret for one account; it cannot be opened for another account.
    func seal(_ secret: [UInt8], of account: String) -> [UInt8]? {
        (try? AES.GCM.seal(secret, using: key, authenticating: Array(account.utf8)))?.combined.map { Array($0) }
    }

    /// The secret; nil when it was sealed with another key or for another account.
    func open(_ sealed: [UInt8], of account: String) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed) else { return nil }
        return (try? AES.GCM.open(box, using: key, authenticating: Array(account.utf8))).map { Array($0) }
    }
}
