import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

// Revocation of user sessions by a tenant (H7).
extension BackendQueryHandler {
    /// Stores the revocation, notifies every gateway, and replies after each gateway has replied.
    ///
    /// No session can be missed. The leases are read after the commit, and every gateway with a lease is notified, also
    /// one with an older connection of a device that is registered elsewhere. A session reads revocations after its
    /// registration has committed. So a session that registers at the same time either reads this revocation, or is in
    /// the registry of its gateway before the notice arrives. A gateway without a lease sends nothing; with its next
    /// lease it registers every session again before the session continues.
    func revoke(
        _ message: Mss_Bus_V1_RevokeSessions, for command: Command, replyTo: String,
        on connection: PostgresConnection
    ) throws(PostgresError) {
        let (instanceID, userID) = (InstanceID(message.instanceID), UserID(message.userID))
        let person = command.by.isPerson ? command.by : nil
        let query = RevocationStore.revoke(
            instanceID, userID, digest: [UInt8](message.sessionDigest), by: person)
        try connection.run(query, within: Self.limit)
        logger.info("sessions revoked", metadata: ["instanceId": "\(instanceID)", "actor": "\(command.actor)"])
        let leaseRecord = try Self.afterCommit { () throws(PostgresError) in
            try connection.run(LeaseRecord.read, within: Self.limit)
        }
        notifyGateways(of: leaseRecord) { correlation in
            .with {
                $0.sessionsRevoked.instanceID = message.instanceID
                $0.sessionsRevoked.userID = message.userID
                $0.sessionsRevoked.sessionDigest = message.sessionDigest
                $0.sessionsRevoked.correlation = correlation
            }
        } whenAnswered: { [bus] isCertain in
            bus.reply(
                .with {
                    $0.correlation = command.correlation
                    $0.revoke.uncertain = !isCertain
                }, to: replyTo)
        }
    }
}
