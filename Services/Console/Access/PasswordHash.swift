import ConnectionThread
import Credentials
import Crypto
import CryptoExtras
import Foundation
import Synchronization

/// Makes and checks password hashes, one at a time. Each deliberately takes 32 MiB and a tenth of a second.
actor PasswordHash {
    private let thread = ConnectionThread(name: "password")
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// scrypt with N = 2^15, r = 8, p = 1 (OWASP Password Storage).
    private static let rounds = 1 << 15
    private static let bytes = 32
    /// Checked for an unknown account, so that the response takes the same time.
    private static let dummyHash = "scrypt$15$00000000000000000000000000000000$" + String(repeating: "0", count: 64)

    /// Hashes a new password with a new salt.
    func make(_ password: String) -> String {
        let salt = RandomBytes.make(16)
        return "scrypt$15$\(HexText.of(salt))$\(HexText.of(derive(password, salt)))"
    }

    /// Whether a password matches a hash.
    ///
    /// - Parameter hash: nil for an unknown account; the check then takes the same time and returns false.
    func check(_ password: String, against hash: String?) -> Bool {
        let parts = (hash ?? Self.dummyHash).split(separator: "$")
        guard parts.count == 4, parts[0] == "scrypt", parts[1] == "15", let salt = HexText.bytes(of: parts[2]),
            let expected = HexText.bytes(of: parts[3])
        else { return false }
        let found = derive(password, salt)
        // The comparison takes the same time wherever the hashes differ.
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

/// Limits the passwords that wait to be hashed (SEC14). Each takes a tenth of a second, so without a limit one source
/// could block the sign-ins of all others.
final class PasswordHashLimiter: Sendable {
    private let maximum: Int
    private let sourceMaximum: Int
    private let waiting = Mutex<[String: Int]>([:])

    /// - Parameters:
    ///   - maximum: waiting passwords of all sources; above it the response is "busy".
    ///   - sourceMaximum: waiting passwords of one source.
    init(maximum: Int = 16, sourceMaximum: Int = 4) {
        self.maximum = maximum
        self.sourceMaximum = sourceMaximum
    }

    /// Performs the work of a source within the limits.
    ///
    /// - Throws: `busy` above a limit.
    func perform<Result>(from source: String, _ work: () async -> Result) async throws(ConsoleFault) -> Result {
        let isAccepted = waiting.withLock { waiting in
            guard waiting.values.reduce(0, +) < maximum, waiting[source, default: 0] < sourceMaximum else {
                return false
            }
            waiting[source, default: 0] += 1
            return true
        }
        guard isAccepted else { throw .busy }
        defer {
            waiting.withLock { waiting in
                let rest = waiting[source, default: 1] - 1
                waiting[source] = rest == 0 ? nil : rest
            }
        }
        return await work()
    }
}
