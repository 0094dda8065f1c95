import BusMessages
import Credentials
import Crypto
import Foundation
import PostgreSQL
import SwiftProtobuf
import SyncModel
import SyncStore

// Keys of instances. The writer makes a key, seals it before it stores it, and returns the secret once (H9, C8, SEC16).
extension ControlHandler {
    /// Bytes of a secret that the writer makes.
    private static let secretBytes = 32
    /// Bytes of a secret that a tenant supplies.
    private static let givenBytes = 8...256

    /// Makes a key. Only this reply contains its secret.
    func create(
        _ request: Mss_Bus_V1_CreateKey, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        guard let purpose = AppKey.Purpose(bus: request.purpose) else {
            return .with { $0.control.refusal = "this build does not know the purpose of the key" }
        }
        guard request.secret.isEmpty || (purpose == .callout && Self.givenBytes.contains(request.secret.count)) else {
            return .with { $0.control.refusal = "a given secret has 8 to 256 bytes and is for callouts only" }
        }
        if let fault = KeyLimits(bus: request.limits).fault { return .with { $0.control.refusal = fault } }
        let instanceID = InstanceID(request.instanceID)
        let keyID = request.keyID
        guard Self.isKeyID(keyID) else {
            return .with { $0.control.refusal = "a key's id is k and 16 hex digits; use the mssctl of this version" }
        }
        let secret = request.secret.isEmpty ? RandomBytes.make(Self.secretBytes) : [UInt8](request.secret)
        let address = KeyAddress(instanceID: instanceID, keyID: keyID, purpose: purpose)
        guard let sealed = ring.seal(secret, of: address) else {
            return .with { $0.control.refusal = "the oplog writers have no master key; set MSS_MASTER_KEYS" }
        }
        let key = AppKey(
            id: keyID, purpose: purpose, sealedSecret: sealed, limits: KeyLimits(bus: request.limits),
            createdAt: WallTime(milliseconds: 0))
        let refusal = "there is no such instance, or it has \(Limits.liveKeys) keys of this purpose; revoke one first"
        var reply = try make(KeyStore.create(key, of: instanceID, by: actor), on: connection, unless: refusal)
        guard reply.control.refusal.isEmpty else {
            let isMade = try connection.run(KeyStore.all, within: .seconds(5)).contains {
                $0.instanceID == instanceID && $0.key.id == keyID
            }
            // A repeated command. It does not return the secret: to know a key id is no proof of a right to its secret.
            if isMade {
                reply.control.refusal =
                    "key \(keyID) was made, but its secret was lost on the way; revoke it and "
                    + "create another"
            }
            return reply
        }
        reply.control.keyID = keyID
        reply.control.secret = Data(secret)
        return reply
    }

    private static func isKeyID(_ text: String) -> Bool {
        guard text.utf8.count == 17, let bytes = HexText.bytes(of: text.dropFirst()) else { return false }
        return text == "k" + HexText.of(bytes)
    }

    /// Seals every secret that is sealed with an older master key again, with the newest one.
    func resealKeys(by actor: OperationActor, on connection: PostgresConnection) throws(PostgresError)
        -> Mss_Bus_V1_Reply
    {
        guard !ring.isEmpty else {
            return .with { $0.control.refusal = "the oplog writers have no master key; set MSS_MASTER_KEYS" }
        }
        var version = try connection.run(ControlStore.version, within: .seconds(5))
        var resealed: UInt32 = 0
        for stored in try connection.run(KeyStore.all, within: .seconds(5))
        where !ring.isCurrent(stored.key.sealedSecret) {
            let address = KeyAddress(instanceID: stored.instanceID, keyID: stored.key.id, purpose: stored.key.purpose)
            guard let secret = ring.open(stored.key.sealedSecret, of: address),
                let sealed = ring.seal(secret.withUnsafeBytes { Array($0) }, of: address)
            else {
                return .with {
                    $0.control.refusal = "key \(stored.key.id) is sealed with a master key that is not here"
                }
            }
            let change = KeyStore.reseal(stored.key.id, of: stored.instanceID, as: sealed, by: actor)
            let reply = try make(change, on: connection, unless: "")
            version = max(version, reply.control.version)
            resealed += 1
        }
        return .with {
            $0.control.version = version
            $0.control.resealed = resealed
        }
    }
}
