import Crypto
import Foundation

/// Seals what a store keeps with AES-256-GCM, as MobileSync's payloads are: what is read back was written by this key,
/// for this place.
struct FieldCipher: Sendable {
    /// Bytes of a key.
    static let keyBytes = 32
    private static let checkText = Data("local entities key".utf8)

    private let key: SymmetricKey

    /// - Throws: `EntityError.invalidArgument` for a key of another length.
    init(key: [UInt8]) throws(EntityError) {
        guard key.count == Self.keyBytes else {
            throw EntityError(.invalidArgument, "an encryption key takes \(Self.keyBytes) bytes, not \(key.count)")
        }
        self.key = SymmetricKey(data: key)
    }

    /// The bytes as they go to the disk.
    func seal(_ bytes: Data, for place: String) throws -> Data {
        let box = try AES.GCM.seal(bytes, using: key, authenticating: Data(place.utf8))
        // Only a nonce of an unusual length has no combined form.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    /// The bytes of what `seal` made for the same place.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func open(_ sealed: Data, for place: String) throws -> Data {
        try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: Data(place.utf8))
    }

    /// What a store keeps to know its key again.
    func makeCheck() throws -> Data { try seal(Self.checkText, for: "") }

    /// Whether a store's check was made with this key.
    func made(_ check: Data) -> Bool { (try? open(check, for: "")) == Self.checkText }
}
