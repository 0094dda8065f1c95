import Credentials
import Crypto
import CryptoExtras
import Foundation

/// A user session, encrypted with a key that only the user's password gives: scrypt (RFC 7914) with a random salt. The
/// password itself is not stored. To open the seal is to verify the password.
struct PasswordSeal: Sendable, Hashable {
    /// The cost of one attempt: 32 MiB of memory.
    static let defaultRounds = 1 << 15
    private static let saltBytes = 16
    private static let blockSize = 8

    let salt: [UInt8]
    let rounds: Int
    let sealedSession: [UInt8]

    init(salt: [UInt8], rounds: Int, sealedSession: [UInt8]) {
        self.salt = salt
        self.rounds = rounds
        self.sealedSession = sealedSession
    }

    /// Seals a session. Takes as long as an attempt.
    ///
    /// - Throws: `SyncError.login` when the key cannot be derived, because there is too little memory.
    init(sessionID: String, of userID: String, password: String, rounds: Int) throws(SyncError) {
        let salt = RandomBytes.make(Self.saltBytes)
        do {
            let cipher = try Self.cipher(password, salt: salt, rounds: rounds)
            let sealed = try cipher?.seal(Data(sessionID.utf8), for: Self.place(userID)) ?? Data()
            self.init(salt: salt, rounds: rounds, sealedSession: [UInt8](sealed))
        } catch {
            throw SyncError(.login, "the password cannot be protected (\(error)); free memory and try again")
        }
    }

    /// Returns the session; nil for a wrong password. Takes as long as an attempt.
    ///
    /// - Throws: `SyncError.login` when the key cannot be derived, because there is too little memory.
    func session(of userID: String, password: String) throws(SyncError) -> String? {
        let cipher: StoreCipher?
        do {
            cipher = try Self.cipher(password, salt: salt, rounds: rounds)
        } catch {
            throw SyncError(.login, "the password cannot be checked (\(error)); free memory and try again")
        }
        let session = try? cipher?.open(Data(sealedSession), for: Self.place(userID))
        return session.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func cipher(_ password: String, salt: [UInt8], rounds: Int) throws -> StoreCipher? {
        let key = try KDF.Scrypt.deriveKey(
            from: Data(password.utf8), salt: salt, outputByteCount: StoreCipher.keyBytes, rounds: rounds,
            blockSize: blockSize, parallelism: 1)
        return StoreCipher(key: key.withUnsafeBytes { [UInt8]($0) }, checkText: "")
    }

    private static func place(_ userID: String) -> String { "login \(userID)" }
}
