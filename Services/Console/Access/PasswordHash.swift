import ConnectionThread
import Credentials
import Crypto
import CryptoExtras
import Foundation

/// Makes and checks password hashes, one at a time: each takes 32 MiB and a tenth of a second, on purpose.
actor PasswordHash {
    private let thread = ConnectionThread(name: "password")
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// scrypt with N = 2^15, r = 8, p = 1 (OWASP Password Storage).
    private static let rounds = 1 << 15
    private static let bytes = 32
    /// Checked for an account that is not there, so that the answer takes as long.
    private static let nobody = "scrypt$15$00000000000000000000000000000000$" + String(repeating: "0", count: 64)

    /// Of a new password, with a salt of its own.
    func make(_ password: String) -> String {
        let salt = RandomBytes.make(16)
        return "scrypt$15$\(HexText.of(salt))$\(HexText.of(derive(password, salt)))"
    }

    /// Whether a password is the one of a hash.
    ///
    /// - Parameter hash: nil: there is none, and it takes as long.
    func check(_ password: String, against hash: String?) -> Bool {
        let parts = (hash ?? Self.nobody).split(separator: "$")
        guard parts.count == 4, parts[0] == "scrypt", parts[1] == "15", let salt = HexText.bytes(of: parts[2]),
            let expected = HexText.bytes(of: parts[3])
        else { return false }
        let found = derive(password, salt)
        // Without regard to where they differ.
        let difference = zip(found, expected).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
        return hash != nil && found.count == expected.count && difference == 0
    }

    private func derive(_ password: String, _ salt: [UInt8]) -> [UInt8] {
        let key = try? KDF.Scrypt.deriveKey(
            from: Array(password.utf8), salt: salt, outputByteCount: Self.bytes, rounds: Self.rounds, blockSize: 8,
            parallelism: 1)
        return key.map { $0.withUnsafeBytes { Array($0) } } ?? []
    }
}
