import Crypto
import Foundation

/// Seals values with AES-GCM: what is read back was written by this key, for this place.
struct ValueCipher: Sendable {
    /// Bytes of a key.
    static let keyBytes = 32
    private static let checkText = Data("client services key".utf8)

    private let key: SymmetricKey

    /// - Throws: `ClientServiceError.invalidArgument` for a key of another length.
    init(key: [UInt8]) throws(ClientServiceError) {
        guard key.count == Self.keyBytes else {
            throw ClientServiceError(.invalidArgument, "a key takes \(Self.keyBytes) bytes, not \(key.count)")
        }
        self.key = SymmetricKey(data: key)
    }

    /// The value as it goes to the disk.
    func seal(_ value: Data, for place: String) throws -> Data {
        let box = try AES.GCM.seal(value, using: key, authenticating: Data(place.utf8))
        // Only a nonce of an unusual length has no combined form.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    /// The value of what `seal` made for the same place.
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
