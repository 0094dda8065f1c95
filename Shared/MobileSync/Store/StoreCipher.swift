import Crypto
package import Foundation

/// Seals bytes with AES-256-GCM: what is read back was written by this key, for this place.
package struct StoreCipher: Sendable {
    /// Bytes of a key.
    package static let keyBytes = 32

    private let key: SymmetricKey
    private let checkText: Data

    /// - Parameter checkText: what a store's check is made of; each module's own.
    /// - Returns: nil for a key of another length.
    package init?(key: [UInt8], checkText: String) {
        guard key.count == Self.keyBytes else { return nil }
        self.key = SymmetricKey(data: key)
        self.checkText = Data(checkText.utf8)
    }

    /// The bytes as they go to the disk.
    package func seal(_ bytes: Data, for place: Data) throws -> Data {
        let box = try AES.GCM.seal(bytes, using: key, authenticating: place)
        // Only a nonce of an unusual length has no combined form.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    /// The same for a place with a name.
    package func seal(_ bytes: Data, for place: String) throws -> Data { try seal(bytes, for: Data(place.utf8)) }

    /// The bytes of what `seal` made for the same place.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    package func open(_ sealed: Data, for place: Data) throws -> Data {
        try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: place)
    }

    /// The same for a place with a name.
    package func open(_ sealed: Data, for place: String) throws -> Data { try open(sealed, for: Data(place.utf8)) }

    /// What a store keeps to know its key again.
    package func makeCheck() throws -> Data { try seal(checkText, for: Data()) }

    /// Whether a store's check was made with this key.
    package func made(_ check: Data) -> Bool { (try? open(check, for: Data())) == checkText }
}
