import Credentials
import Foundation
import GRDB
import SyncModel

/// Who the device is for the service: its id, and the secret that the id belongs to there (DeviceProtocol.md, Device
/// secrets).
struct LocalIdentity: Sendable {
    static let secretBytes = 32

    var deviceID: String
    var secret: [UInt8]
}

extension LocalStore {
    /// The identity that this store holds; the secret is made, and on the disk, before anybody is shown it.
    ///
    /// - Parameter named: the id that the app gave; in force until the service refuses it.
    func loadIdentity(_ named: String) throws(SyncError) -> LocalIdentity {
        let row = try access("reading the identity") { db in
            try Row.fetchOne(db, sql: "SELECT own_device_id, device_secret FROM store")
        }
        let deviceID: String = row?[0] ?? named
        guard let sealed: Data = row?[1] else {
            let made = LocalIdentity(deviceID: deviceID, secret: RandomBytes.make(LocalIdentity.secretBytes))
            try change("storing the identity") { db in try write(made.secret, in: db) }
            return made
        }
        let secret = try access("opening the secret") { _ in try cipher?.openSecret(sealed) ?? sealed }
        return LocalIdentity(deviceID: deviceID, secret: [UInt8](secret))
    }

    /// Takes a new device id and secret. The positions of the former id's own channels say nothing about those of the
    /// new one; their oplogs stay for the app.
    func takeNewIdentity() throws(SyncError) {
        let new = LocalIdentity(
            deviceID: UUID().uuidString.lowercased(), secret: RandomBytes.make(LocalIdentity.secretBytes))
        let former = identity.deviceID
        try change("taking a new identity") { db in
            try db.execute(sql: "UPDATE store SET own_device_id = ?", arguments: [new.deviceID])
            try write(new.secret, in: db)
            try db.execute(
                sql: "UPDATE channel SET user_id = ? WHERE kind = ? AND user_id = ''",
                arguments: [former, ChannelKind.device.rawValue])
        }
        identity = new
        try loadChannels()
    }

    private func write(_ secret: [UInt8], in db: Database) throws {
        let stored = try cipher?.sealSecret(Data(secret)) ?? Data(secret)
        try db.execute(sql: "UPDATE store SET device_secret = ?", arguments: [stored])
    }

    /// Writes the secret anew under another key.
    static func rewriteSecret(_ db: Database, from old: PayloadCipher?, to new: PayloadCipher?) throws {
        guard let stored = try Data.fetchOne(db, sql: "SELECT device_secret FROM store") else { return }
        let secret = try old?.openSecret(stored) ?? stored
        try db.execute(
            sql: "UPDATE store SET device_secret = ?", arguments: [try new?.sealSecret(secret) ?? secret])
    }
}
