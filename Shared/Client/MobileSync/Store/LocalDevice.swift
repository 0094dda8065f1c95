import Credentials
import DeviceProtocol
import Foundation
import GRDB
import SwiftProtobuf
import SyncModel

/// The identity of the device for the service: its id and the secret that belongs to the id (`DeviceProtocol.md`,
/// Device secrets).
struct LocalIdentity: Sendable {
    static let secretBytes = 32

    var deviceID: String
    var secret: [UInt8]
}

/// The part of a local store that describes the device: its identity, connection count, push token and heartbeats. Not
/// thread-safe.
final class LocalDevice {
    private let file: LocalStoreFile
    private let channels: LocalChannels
    /// The device id that the app chose, and its secret if the app has one. They are used until the service refuses
    /// them.
    private let named: LocalIdentity
    /// The device's identity for the service.
    private(set) var identity: LocalIdentity

    /// Call `load` before any other use.
    init(file: LocalStoreFile, channels: LocalChannels, named: LocalIdentity) {
        self.file = file
        self.channels = channels
        self.named = named
        identity = named
    }

    // MARK: Identity

    /// Reads the identity. A new secret is on the disk before the client sends it.
    func load() throws(SyncError) {
        let row = try file.access("reading the identity") { db in
            try Row.fetchOne(db, sql: "SELECT own_device_id, device_secret FROM store")
        }
        let deviceID: String = row?[0] ?? named.deviceID
        guard let sealed: Data = row?[1] else {
            let secret = named.secret.isEmpty ? RandomBytes.make(LocalIdentity.secretBytes) : named.secret
            let made = LocalIdentity(deviceID: deviceID, secret: secret)
            try file.change("storing the identity") { db in try write(made.secret, in: db) }
            identity = made
            return
        }
        let secret = try file.access("opening the secret") { _ in try file.cipher?.openSecret(sealed) ?? sealed }
        identity = LocalIdentity(deviceID: deviceID, secret: [UInt8](secret))
    }

    /// Creates a new device id and secret. The positions of the former id's device channels do not apply to the new id.
    /// Their oplogs stay available to the app.
    func replaceIdentity() throws(SyncError) {
        let new = LocalIdentity(
            deviceID: UUID().uuidString.lowercased(), secret: RandomBytes.make(LocalIdentity.secretBytes))
        let former = identity.deviceID
        try file.change("creating a new identity") { db in
            try db.execute(sql: "UPDATE store SET own_device_id = ?", arguments: [new.deviceID])
            try write(new.secret, in: db)
            try db.execute(
                sql: "UPDATE channel SET user_id = ? WHERE kind = ? AND user_id = ''",
                arguments: [former, ChannelKind.device.rawValue])
        }
        identity = new
        try channels.load()
    }

    private func write(_ secret: [UInt8], in db: Database) throws {
        let stored = try file.cipher?.sealSecret(Data(secret)) ?? Data(secret)
        try db.execute(sql: "UPDATE store SET device_secret = ?", arguments: [stored])
    }

    /// Encrypts the secret with another key.
    static func rewrite(_ db: Database, from old: PayloadCipher?, to new: PayloadCipher?) throws {
        guard let stored = try Data.fetchOne(db, sql: "SELECT device_secret FROM store") else { return }
        let secret = try old?.openSecret(stored) ?? stored
        try db.execute(
            sql: "UPDATE store SET device_secret = ?", arguments: [try new?.sealSecret(secret) ?? secret])
    }

    // MARK: Connections

    /// Counts a connection attempt durably.
    ///
    /// - Returns: the number of the attempt, higher than all earlier ones.
    func countConnection() throws(SyncError) -> UInt64 {
        let number = try file.access("counting a connection") { db in
            try Int64.fetchOne(db, sql: "UPDATE store SET connections = connections + 1 RETURNING connections")
        }
        return UInt64(number ?? 0)
    }

    /// Returns the push token for `Connect`; nil when the app has never set one.
    func pushToken() throws(SyncError) -> Mss_Device_V1_PushToken? {
        let row = try file.access("reading the push token") { db in
            try Row.fetchOne(db, sql: "SELECT push_provider, push_token FROM store WHERE push_token IS NOT NULL")
        }
        guard let row else { return nil }
        return .with {
            $0.provider = Mss_Device_V1_PushProvider(rawValue: row[0]) ?? .unknown
            $0.token = row[1]
        }
    }

    /// Stores the push token; an empty token ends wake-ups.
    ///
    /// - Returns: whether the token has changed.
    func setPushToken(_ token: PushToken) throws(SyncError) -> Bool {
        var isNew = false
        try file.change("storing the push token") { db in
            try db.execute(
                sql: """
                    UPDATE store SET push_provider = :provider, push_token = :token
                    WHERE push_token IS NOT :token OR push_provider IS NOT :provider
                    """, arguments: ["provider": token.provider.rawValue, "token": token.text])
            isNew = db.changesCount > 0
        }
        return isNew
    }

    /// Returns the results of pings on a network.
    func heartbeat(of network: String) throws(SyncError) -> Heartbeat.Learned {
        try file.access("reading a heartbeat") { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT good_seconds, bad_seconds, doubtful_seconds FROM heartbeat WHERE network = ?",
                arguments: [network])
            func duration(_ seconds: Int64?) -> Duration? {
                seconds.flatMap { (1...3_600).contains($0) ? .seconds($0) : nil }
            }
            return Heartbeat.Learned(good: duration(row?[0]), bad: duration(row?[1]), doubtful: duration(row?[2]))
        }
    }

    /// Stores the results of pings on a network.
    func setHeartbeat(_ learned: Heartbeat.Learned, of network: String) throws(SyncError) {
        try file.change("storing a heartbeat") { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO heartbeat VALUES (?, ?, ?, ?)",
                arguments: [
                    network, learned.good?.components.seconds ?? 0, learned.bad?.components.seconds ?? 0,
                    learned.doubtful?.components.seconds ?? 0,
                ])
        }
    }
}
