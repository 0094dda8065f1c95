import BusMessages
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

// Invalid verdicts and revocations of tenants.
extension GatewayRuntime {
    /// Processes a tenant's revocation. The reply is sent when every session of the user has processed it, so no
    /// checked data is sent for these sessions after the reply. A session that binds at this moment is in the registry
    /// already, or it registers after the revocation was stored and learns of it from the reply.
    func received(_ message: Mss_Bus_V1_SessionsRevoked, replyTo: String?) {
        let (userID, digest) = (UserID(message.userID), [UInt8](message.sessionDigest))
        let sessions = sessions(of: userID, InstanceID(message.instanceID))
        let count = NoticeReplyCollector(sessions: sessions.count) { [bus] _ in
            guard let replyTo else { return }
            bus.reply(
                .with {
                    $0.correlation = message.correlation
                    $0.taken = .init()
                }, to: replyTo, through: .taken)
        }
        EventLoopBatch.execute(sessions, on: \.eventLoop) { sessions in
            for session in sessions {
                session.handler.value.handle(.revoked(userID, digest: digest))
                count.add(NoticeReplyEntries())
            }
        }
    }

    /// Processes an invalid verdict that some gateway received.
    func received(_ message: Mss_Bus_V1_SessionInvalid) {
        let (userID, digest) = (UserID(message.userID), [UInt8](message.sessionDigest))
        notify(
            sessions(of: userID, InstanceID(message.instanceID)),
            .invalidated(userID, digest: digest, reason: message.reason))
    }

    private func sessions(of userID: UserID, _ instanceID: InstanceID) -> [SessionHandle] {
        registry.sessions(listeningTo: TargetAddress(instanceID: instanceID, kind: .user, target: userID.text))
    }
}
