import Crypto
package import Foundation

/// Encrypts bytes with AES-256-GCM. Decryption fails unless the same key encrypted the bytes for the same place.
package struct StoreCipher: Sendable {
    /// The bytes of a key.
    package static let keyBytes = 32

    private let key: SymmetricKey
    private let checkText: Data

    /// Creates a cipher; nil for a key of another length.
    ///
    /// - Parameter checkText: the plain text of a store's check value. Each module has its own.
    package init?(key: [UInt8], checkText: String) {
        guard key.count == Self.keyBytes else { return nil }
        self.key = SymmetricKey(data: key)
        self.checkText = Data(checkText.utf8)
    }

    /// Encrypts bytes for a place.
    package func seal(_ bytes: Data, for place: Data) throws -> Data {
        let box = try AES.GCM.seal(bytes, using: key, authenticating: place)
        // Only a nonce of an unusual length has no combined form.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    /// Encrypts bytes for a place with a name.
    package func seal(_ bytes: Data, for place: String) throws -> Data { try seal(bytes, for: Data(place.utf8)) }

    /// Decrypts bytes that `seal` encrypted for the same place.
    ///
    /// - Throws: `CryptoKitError` for any other data.
    package func open(_ sealed: Data, for place: Data) throws -> Data {
        try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: place)
    }

    /// Decrypts bytes for a place with a name.
    package func open(_ sealed: Data, for place: String) throws -> Data { try open(sealed, for: Data(place.utf8)) }

    /// Creates the check value with which a store recognises its key.
    package func makeCheck() throws -> Data { try seal(checkText, for: Data()) }

    /// Whether this key created a store's check value.
    package func made(_ check: Data) -> Bool { (try? open(check, for: Data())) == checkText }
}
