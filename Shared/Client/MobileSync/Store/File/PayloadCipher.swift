import Foundation

/// Encrypts the payloads of a local store. Decryption fails unless the same key encrypted the data for the same oplog.
struct PayloadCipher: Sendable {
    private static let secretPlace = Data("device secret".utf8)

    private let cipher: StoreCipher

    /// - Throws: `SyncError.invalidArgument` for a key of another length.
    init(key: [UInt8]) throws(SyncError) {
        guard let cipher = StoreCipher(key: key, checkText: "mobile-sync store key") else {
            throw SyncError(.invalidArgument, "storeKey must have \(StoreCipher.keyBytes) bytes, not \(key.count)")
        }
        self.cipher = cipher
    }

    /// Encrypts a payload; an empty one stays empty.
    func seal(_ payload: Data, channelRow: Int64, oplogID: Int64) throws -> Data {
        payload.isEmpty ? payload : try cipher.seal(payload, for: Self.place(channelRow, oplogID))
    }

    /// Decrypts a payload that `seal` encrypted for the same oplog.
    ///
    /// - Throws: `CryptoKitError` for any other data.
    func open(_ sealed: Data, channelRow: Int64, oplogID: Int64) throws -> Data {
        sealed.isEmpty ? sealed : try cipher.open(sealed, for: Self.place(channelRow, oplogID))
    }

    /// Encrypts the device's secret.
    func sealSecret(_ secret: Data) throws -> Data { try cipher.seal(secret, for: Self.secretPlace) }

    /// Decrypts a secret that `sealSecret` encrypted.
    ///
    /// - Throws: `CryptoKitError` for any other data.
    func openSecret(_ sealed: Data) throws -> Data { try cipher.open(sealed, for: Self.secretPlace) }

    /// Encrypts a part of an operation; an empty one stays empty.
    func seal(_ data: Data, ofOperation id: String, _ part: String) throws -> Data {
        data.isEmpty ? data : try cipher.seal(data, for: Self.place(id, part))
    }

    /// Decrypts a part that `seal` encrypted for the same operation.
    ///
    /// - Throws: `CryptoKitError` for any other data.
    func open(_ sealed: Data, ofOperation id: String, _ part: String) throws -> Data {
        sealed.isEmpty ? sealed : try cipher.open(sealed, for: Self.place(id, part))
    }

    /// Creates the check value with which a store recognises its key.
    func makeCheck() throws -> Data { try cipher.makeCheck() }

    /// Whether this key created a store's check value.
    func made(_ check: Data) -> Bool { cipher.made(check) }

    private static func place(_ operationID: String, _ part: String) -> Data {
        Data("operation \(part) \(operationID)".utf8)
    }

    private static func place(_ channelRow: Int64, _ oplogID: Int64) -> Data {
        withUnsafeBytes(of: channelRow.bigEndian) { Data($0) } + withUnsafeBytes(of: oplogID.bigEndian) { Data($0) }
    }
}
