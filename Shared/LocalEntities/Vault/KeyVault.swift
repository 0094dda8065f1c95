public import Foundation
import MobileSync
import Synchronization

/// Keeps a store's encryption key in a file that a PIN opens (spec, two-way §2: key vault with PIN lock and unlock).
///
/// Who has a copy of the file tries PINs at the speed of his machine: prefer the system's key chain where there is one,
/// and words over four digits. After ten wrong PINs in a row the key is gone, and with it what it has sealed.
public final class KeyVault: Sendable {
    /// Wrong PINs in a row.
    public static let mostAttempts = 10
    /// Fewest characters of a PIN.
    public static let shortestPIN = 4
    private static let place = "key vault"

    private struct Content: Codable {
        var salt: [UInt8]
        var iterations: Int
        /// `StoreCipher` of the PIN's key; empty: destroyed.
        var sealedKey: [UInt8]
        /// Counted before the PIN is looked at, so that ending the app wins nothing.
        var failedAttempts: Int
    }

    private let file: URL
    /// The key while it is unlocked.
    private let opened = Mutex<[UInt8]?>(nil)

    /// A vault in a file that is there; locked.
    ///
    /// - Throws: `EntityError.persistence` when it cannot be read.
    public init(file: URL) throws(EntityError) {
        self.file = file
        _ = try Self.content(of: file)
    }

    private init(file: URL, content: Content, key: [UInt8]) throws(EntityError) {
        self.file = file
        try Self.write(content, to: file)
        opened.withLock { $0 = key }
    }

    /// Makes a vault with a key of its own; unlocked.
    ///
    /// - Parameter iterations: what a guess costs; 200,000, the default, are some tenths of a second.
    /// - Throws: `EntityError`: `invalidArgument` for a PIN under 4 characters or fewer than 1,000 iterations;
    ///   `persistence`, also when the file is there.
    public static func create(file: URL, pin: String, iterations: Int = 200_000) throws(EntityError) -> KeyVault {
        guard !FileManager.default.fileExists(atPath: file.path) else {
            throw EntityError(.persistence, "there is a vault at \(file.path); open or delete it")
        }
        let key = randomBytes(StoreCipher.keyBytes)
        return try KeyVault(file: file, content: try seal(key, pin: pin, iterations: iterations), key: key)
    }

    /// Whether the key cannot be had now.
    public var isLocked: Bool { opened.withLock { $0 == nil } }

    /// The key, for `EntityStoreConfiguration.encryptionKey`.
    ///
    /// - Throws: `EntityError.vault` while it is locked.
    public func key() throws(EntityError) -> [UInt8] {
        guard let key = opened.withLock({ $0 }) else { throw EntityError(.vault, "the vault is locked: unlock it") }
        return key
    }

    /// Forgets the key in memory. A store that is open stays open.
    public func lock() { opened.withLock { $0 = nil } }

    /// Opens the vault. Takes its time, as each guess should.
    ///
    /// - Throws: `EntityError`: `vault` for a wrong PIN, or when the key was destroyed; `persistence`.
    public func unlock(pin: String) throws(EntityError) {
        let key = try open(pin: pin)
        opened.withLock { $0 = key }
    }

    /// Gives the vault another PIN; the key stays.
    ///
    /// - Throws: As `unlock` and `create`; the former PIN counts then.
    public func changePIN(from old: String, to new: String) throws(EntityError) {
        let key = try open(pin: old)
        let iterations = try Self.content(of: file).iterations
        try Self.write(try Self.seal(key, pin: new, iterations: iterations), to: file)
    }

    private func open(pin: String) throws(EntityError) -> [UInt8] {
        // One guess at a time.
        let result = opened.withLock { _ in
            Result { () throws(EntityError) in try Self.guess(pin, in: file) }
        }
        return try result.get()
    }

    private static func guess(_ pin: String, in file: URL) throws(EntityError) -> [UInt8] {
        var content = try content(of: file)
        guard !content.sealedKey.isEmpty else {
            throw EntityError(.vault, "too many PINs were wrong: the key is destroyed")
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
            throw EntityError(.invalidArgument, "a PIN has at least \(shortestPIN) characters, and 1,000 iterations")
        }
        let salt = randomBytes(16)
        let cipher = try StoreCipher(entityKey: PINKey.derive(pin, salt: salt, iterations: iterations))
        do {
            let sealed = try cipher.seal(Data(key), for: place)
            return Content(salt: salt, iterations: iterations, sealedKey: [UInt8](sealed), failedAttempts: 0)
        } catch {
            throw EntityError(.vault, "the key could not be sealed (\(error))")
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
