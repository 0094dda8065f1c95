import Concurrency
public import Foundation
import MobileSync

/// Stores an encryption key in a file that a PIN opens (ENT9: key vault with PIN lock and unlock).
///
/// An attacker with a copy of the file can try PINs at the speed of a machine. Prefer the system's key chain where
/// there is one, and a passphrase to four digits. Ten wrong PINs in a row destroy the key; data that it encrypts is
/// then lost.
public final class KeyVault: Sendable {
    /// The number of wrong PINs in a row that destroys the key.
    public static let mostAttempts = 10
    /// The smallest number of characters in a PIN.
    public static let shortestPIN = 4
    private static let place = "key vault"

    private struct Content: Codable {
        var salt: [UInt8]
        var iterations: Int
        /// The key, encrypted by `StoreCipher` with the key of the PIN; empty: destroyed.
        var sealedKey: [UInt8]
        /// Counted before the PIN is checked, so that ending the app does not save an attempt.
        var failedAttempts: Int
    }

    private let file: URL
    /// The key while the vault is unlocked.
    private let opened = LockedValue<[UInt8]?>(nil)

    /// Opens an existing vault file; the vault is locked.
    ///
    /// - Throws: `EntityError.persistence` when the file cannot be read.
    public init(file: URL) throws(EntityError) {
        self.file = file
        _ = try Self.content(of: file)
    }

    private init(file: URL, content: Content, key: [UInt8]) throws(EntityError) {
        self.file = file
        try Self.write(content, to: file)
        opened.withLock { $0 = key }
    }

    /// Creates a vault with a new random key; the vault is unlocked.
    ///
    /// - Parameters:
    ///   - file: the file to create.
    ///   - pin: at least 4 characters.
    ///   - iterations: the cost of one attempt, at least 1,000. The default of 200,000 takes some tenths of a second.
    /// - Throws: `EntityError`: `invalidArgument` for a shorter PIN or fewer iterations; `persistence`, also when the
    ///   file exists.
    public static func create(file: URL, pin: String, iterations: Int = 200_000) throws(EntityError) -> KeyVault {
        guard !FileManager.default.fileExists(atPath: file.path) else {
            throw EntityError(.persistence, "a vault exists at \(file.path); open or delete it")
        }
        let key = randomBytes(StoreCipher.keyBytes)
        return try KeyVault(file: file, content: try seal(key, pin: pin, iterations: iterations), key: key)
    }

    /// Whether the vault is locked, so that `key()` throws.
    public var isLocked: Bool { opened.withLock { $0 == nil } }

    /// Returns the key, for `EntityStoreConfiguration.encryptionKey`.
    ///
    /// - Throws: `EntityError.vault` while the vault is locked.
    public func key() throws(EntityError) -> [UInt8] {
        guard let key = opened.withLock({ $0 }) else { throw EntityError(.vault, "the vault is locked; unlock it") }
        return key
    }

    /// Locks the vault: removes the key from memory. An open store stays open.
    public func lock() { opened.withLock { $0 = nil } }

    /// Unlocks the vault. It is slow on purpose, because each attempt must be.
    ///
    /// - Throws: `EntityError`: `vault` for a wrong PIN and for a destroyed key; `persistence`.
    public func unlock(pin: String) throws(EntityError) {
        let key = try open(pin: pin)
        opened.withLock { $0 = key }
    }

    /// Changes the PIN; the key stays.
    ///
    /// - Throws: as `unlock` and `create`; the former PIN stays valid then.
    public func changePIN(from old: String, to new: String) throws(EntityError) {
        let key = try open(pin: old)
        let iterations = try Self.content(of: file).iterations
        try Self.write(try Self.seal(key, pin: new, iterations: iterations), to: file)
    }

    private func open(pin: String) throws(EntityError) -> [UInt8] {
        // Only one attempt at a time.
        let result = opened.withLock { _ in
            Result { () throws(EntityError) in try Self.guess(pin, in: file) }
        }
        return try result.get()
    }

    private static func guess(_ pin: String, in file: URL) throws(EntityError) -> [UInt8] {
        var content = try content(of: file)
        guard !content.sealedKey.isEmpty else {
            throw EntityError(.vault, "the key is destroyed after too many wrong PINs")
        }
        content.failedAttempts += 1
        try write(content, to: file)
        let cipher = try StoreCipher(
            entityKey: PINKey.derive(pin, salt: content.salt, iterations: content.iterations))
        guard let key = try? cipher.open(Data(content.sealedKey), for: place) else {
            let left = mostAttempts - content.failedAttempts
            if left <= 0 {
                content.sealedKey = []
                try write(content, to: file)
            }
            throw EntityError(.vault, "the PIN is wrong; \(max(left, 0)) attempts are left")
        }
        content.failedAttempts = 0
        try write(content, to: file)
        return [UInt8](key)
    }

    private static func seal(_ key: [UInt8], pin: String, iterations: Int) throws(EntityError) -> Content {
        guard pin.count >= shortestPIN, iterations >= 1_000 else {
            throw EntityError(
                .invalidArgument,
                "a PIN must have at least \(shortestPIN) characters, and iterations must be at least 1,000")
        }
        let salt = randomBytes(16)
        let cipher = try StoreCipher(entityKey: PINKey.derive(pin, salt: salt, iterations: iterations))
        do {
            let sealed = try cipher.seal(Data(key), for: place)
            return Content(salt: salt, iterations: iterations, sealedKey: [UInt8](sealed), failedAttempts: 0)
        } catch {
            throw EntityError(.vault, "the key could not be encrypted (\(error))")
        }
    }

    private static func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    private static func content(of file: URL) throws(EntityError) -> Content {
        do {
            return try JSONDecoder().decode(Content.self, from: Data(contentsOf: file))
        } catch {
            throw EntityError(.persistence, "the vault \(file.path) cannot be read (\(error))")
        }
    }

    private static func write(_ content: Content, to file: URL) throws(EntityError) {
        do {
            try JSONEncoder().encode(content).write(to: file, options: .atomic)
        } catch {
            throw EntityError(.persistence, "the vault \(file.path) cannot be written (\(error))")
        }
    }
}
