import Crypto
import Foundation

/// Derives a key from a PIN: PBKDF2 with HMAC-SHA-256 (RFC 8018 §5.2), one block.
enum PINKey {
    /// - Parameters:
    ///   - iterations: the number of rounds; an attempt costs as much.
    /// - Returns: 32 bytes.
    static func derive(_ pin: String, salt: [UInt8], iterations: Int) -> [UInt8] {
        let key = SymmetricKey(data: Data(pin.utf8))
        var round = Array(HMAC<SHA256>.authenticationCode(for: salt + [0, 0, 0, 1], using: key))
        var derived = round
        for _ in stride(from: 1, to: iterations, by: 1) {
            round = Array(HMAC<SHA256>.authenticationCode(for: round, using: key))
            for index in derived.indices { derived[index] ^= round[index] }
        }
        return derived
    }
}
