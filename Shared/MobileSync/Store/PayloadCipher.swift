import Foundation

/// Seals the payloads of a local store: what is read back was written by its key, for this oplog.
struct PayloadCipher: Sendable {
    private static let secretPlace = Data("device secret".utf8)

    private let cipher: StoreCipher

    /// - Throws: `SyncError.invalidArgument` for a key of another length.
    init(key: [UInt8]) throws(SyncError) {
        guard let cipher = StoreCipher(key: key, checkText: "mobile-sync store key") else {
            throw SyncError(.invalidArgument, "storeKey takes \(StoreCipher.keyBytes) bytes, not \(key.count)")
        }
        self.cipher = cipher
    }

    /// The payload as it goes to the disk; an empty one stays empty.
    func seal(_ payload: Data, channelRow: Int64, oplogID: Int64) throws -> Data {
        payload.isEmpty ? payload : try cipher.seal(payload, for: Self.place(channelRow, oplogID))
    }

    /// The payload of what `seal` made for the same place.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func open(_ sealed: Data, channelRow: Int64, oplogID: Int64) throws -> Data {
        sealed.isEmpty ? sealed : try cipher.open(sealed, for: Self.place(channelRow, oplogID))
    }

    /// The device's secret as it goes to the disk.
    func sealSecret(_ secret: Data) throws -> Data { try cipher.seal(secret, for: Self.secretPlace) }

    /// The secret of what `sealSecret` made.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func openSecret(_ sealed: Data) throws -> Data { try cipher.open(sealed, for: Self.secretPlace) }

    /// A part of an operation as it goes to the disk; an empty one stays empty.
    func seal(_ data: Data, ofOperation id: String, _ part: String) throws -> Data {
        data.isEmpty ? data : try cipher.seal(data, for: Self.place(id, part))
    }

    /// The part of what `seal` made for the same operation.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func open(_ sealed: Data, ofOperation id: String, _ part: String) throws -> Data {
        sealed.isEmpty ? sealed : try cipher.open(sealed, for: Self.place(id, part))
    }

    /// What a store keeps to know its key again.
    func makeCheck() throws -> Data { try cipher.makeCheck() }

    /// Whether a store's check was made with this key.
    func made(_ check: Data) -> Bool { cipher.made(check) }

    private static func place(_ operationID: String, _ part: String) -> Data {
        Data("operation \(part) \(operationID)".utf8)
    }

    private static func place(_ channelRow: Int64, _ oplogID: Int64) -> Data {
        withUnsafeBytes(of: channelRow.bigEndian) { Data($0) } + withUnsafeBytes(of: oplogID.bigEndian) { Data($0) }
    }
}
