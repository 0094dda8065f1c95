import BusMessages
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

// What the tenants say of sessions, asked for or not.
extension GatewayCore {
    /// Asks a validator; without an answer the verdict is unknown.
    func validate(
        instanceID: InstanceID, userID: UserID, sessionID: String, bindNumber: UInt32, for session: SessionHandle
    ) {
        let askedAt = clock.now()
        bus.request(.validate, as: Mss_Bus_V1_ValidateCommands.self) { number in
            .with {
                $0.correlation = number
                $0.instanceID = instanceID.text
                $0.userID = userID.text
                $0.sessionID = sessionID
            }
        } completion: { [self] result in
            var answer: Mss_Bus_V1_ValidateReply?
            if case .success(let reply) = result, case .validate(let verdict)? = reply.body { answer = verdict }
            tell([session], .validated(answer, bindNumber: bindNumber, askedAt: askedAt))
        }
    }

    /// A tenant has ended sessions: answered once every session of the user here has taken note, so that nothing
    /// checked goes out on them after the answer. One that is bound at this moment is in the registry already, or
    /// registers later than the revocation was stored and hears of it then.
    func received(_ message: Mss_Bus_V1_SessionsRevoked, replyTo: String?) {
        let (userID, digest) = (UserID(message.userID), [UInt8](message.sessionDigest))
        let sessions = sessions(of: userID, InstanceID(message.instanceID))
        let count = TakenCount(sessions: sessions.count) { [bus] _ in
            guard let replyTo else { return }
            bus.reply(
                .with {
                    $0.correlation = message.correlation
                    $0.taken = .init()
                }, to: replyTo, through: .taken)
        }
        SessionTurn.take(sessions, on: \.eventLoop) { sessions in
            for session in sessions {
                session.handler.value.handle(.revoked(userID, digest: digest))
                count.add(TakenEntries())
            }
        }
    }

    /// A tenant has called a session invalid when some gateway asked.
    func received(_ message: Mss_Bus_V1_SessionInvalid) {
        let (userID, digest) = (UserID(message.userID), [UInt8](message.sessionDigest))
        tell(
            sessions(of: userID, InstanceID(message.instanceID)),
            .invalidated(userID, digest: digest, reason: message.reason))
    }

    private func sessions(of userID: UserID, _ instanceID: InstanceID) -> [SessionHandle] {
        registry.sessions(listeningTo: TargetAddress(instanceID: instanceID, kind: .user, target: userID.text))
    }
}
