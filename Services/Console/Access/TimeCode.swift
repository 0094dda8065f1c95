import Crypto
import Foundation

/// Codes of a second factor: six digits that an authenticator app and this process make of one secret and the time
/// (RFC 6238 with its defaults: SHA-1, 30 seconds).
enum TimeCode {
    private static let step: Int64 = 30

    /// The step whose code this is, of now, the one before and the one after; nil: none.
    ///
    /// - Parameters:
    ///   - code: as it was typed; spaces do not count.
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

    /// The secret as authenticator apps take it (RFC 4648, Base32 without padding).
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
