import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

// Ending sessions for a tenant (spec H7).
extension OperationWork {
    /// Stores the revocation, then tells every gateway and answers once each knows.
    ///
    /// No session can be missed. Who is told is read after the commit, and everybody who may hold a lease is: also a
    /// gateway that has an older connection of a device which is on record elsewhere. A session looks for revocations
    /// after its registration has committed, so one that registers meanwhile either sees this one, or is in its
    /// gateway's registry before the notice comes. A gateway without a lease hands out nothing; with its next one it
    /// registers every session anew, before any of them goes on.
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
        let book = try Self.afterCommit { () throws(PostgresError) in
            try connection.run(LeaseBook.read, within: Self.limit)
        }
        tell(book) { correlation in
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
