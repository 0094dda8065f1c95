import Crypto
import Foundation

/// Seals the payloads of a local store with AES-GCM: what is read back was written by this key, for this oplog.
struct PayloadCipher: Sendable {
    /// Bytes of a key.
    static let keyBytes = 32
    private static let checkText = Data("mobile-sync store key".utf8)
    private static let secretPlace = Data("device secret".utf8)

    private let key: SymmetricKey

    /// - Throws: `SyncError.invalidArgument` for a key of another length.
    init(key: [UInt8]) throws(SyncError) {
        guard key.count == Self.keyBytes else {
            throw SyncError(.invalidArgument, "storeKey takes \(Self.keyBytes) bytes, not \(key.count)")
        }
        self.key = SymmetricKey(data: key)
    }

    /// The payload as it goes to the disk; an empty one stays empty.
    func seal(_ payload: Data, channelRow: Int64, oplogID: Int64) throws -> Data {
        payload.isEmpty ? payload : try seal(payload, for: Self.place(channelRow, oplogID))
    }

    /// The payload of what `seal` made for the same place.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func open(_ sealed: Data, channelRow: Int64, oplogID: Int64) throws -> Data {
        if sealed.isEmpty { return sealed }
        return try AES.GCM.open(
            AES.GCM.SealedBox(combined: sealed), using: key, authenticating: Self.place(channelRow, oplogID))
    }

    /// The device's secret as it goes to the disk.
    func sealSecret(_ secret: Data) throws -> Data { try seal(secret, for: Self.secretPlace) }

    /// The secret of what `sealSecret` made.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func openSecret(_ sealed: Data) throws -> Data {
        try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: Self.secretPlace)
    }

    /// A part of an operation as it goes to the disk; an empty one stays empty.
    func seal(_ data: Data, ofOperation id: String, _ part: String) throws -> Data {
        data.isEmpty ? data : try seal(data, for: Self.place(id, part))
    }

    /// The part of what `seal` made for the same operation.
    ///
    /// - Throws: `CryptoKitError` for anything else.
    func open(_ sealed: Data, ofOperation id: String, _ part: String) throws -> Data {
        if sealed.isEmpty { return sealed }
        return try AES.GCM.open(
            AES.GCM.SealedBox(combined: sealed), using: key, authenticating: Self.place(id, part))
    }

    /// What a store keeps to know its key again.
    func makeCheck() throws -> Data { try seal(Self.checkText, for: Data()) }

    /// Whether a store's check was made with this key.
    func made(_ check: Data) -> Bool {
        guard let box = try? AES.GCM.SealedBox(combined: check) else { return false }
        return (try? AES.GCM.open(box, using: key)) == Self.checkText
    }

    private func seal(_ data: Data, for place: Data) throws -> Data {
        let box = try AES.GCM.seal(data, using: key, authenticating: place)
        // Only a nonce of an unusual length has no combined form.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return combined
    }

    private static func place(_ operationID: String, _ part: String) -> Data {
        Data("operation \(part) \(operationID)".utf8)
    }

    private static func place(_ channelRow: Int64, _ oplogID: Int64) -> Data {
        withUnsafeBytes(of: channelRow.bigEndian) { Data($0) } + withUnsafeBytes(of: oplogID.bigEndian) { Data($0) }
    }
}
