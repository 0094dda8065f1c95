import AMQP
import BusMessages
import Logging
import Metrics
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

// What oplog writers and operators tell this gateway.
extension GatewayCore {
    /// A channel's step for one session.
    private struct Step: Sendable {
        let session: SessionHandle
        let notice: ChannelNotice
        /// Of a notice whose sender waits for what was taken.
        let count: TakenCount?
    }

    /// Bodies of notices from oplog writers, on the bus thread. What one body after another says of channels reaches
    /// the sessions in one turn of each event loop.
    func received(_ deliveries: [AMQPDelivery]) {
        var steps: [Step] = []
        for delivery in deliveries {
            guard let notices = delivery.notices else {
                logger.error("a notice could not be read")
                continue
            }
            if notices.refused > 0 {
                refusedNotices.increment(by: notices.refused)
                logger.error(
                    "notices came from who may not send them",
                    metadata: ["exchange": "\(delivery.exchange)", "count": "\(notices.refused)"])
            }
            for notice in notices.taken {
                if case .oplogs(let message)? = notice.body {
                    databaseTime.observe(message)
                    if let notice = ChannelNotice(bus: message) {
                        steps += self.steps(of: notice, replyTo: delivery.replyTo)
                    }
                } else {
                    // Sessions hear of everything in the order in which it came.
                    take(steps)
                    steps = []
                    received(notice, replyTo: delivery.replyTo)
                }
            }
        }
        take(steps)
    }

    /// What is known of where a channel stands.
    func received(_ notice: ChannelNotice) { take(steps(of: notice, replyTo: nil)) }

    private func received(_ notice: Mss_Bus_V1_GatewayNotice, replyTo: String?) {
        switch notice.body {
        case .superseded(let message):
            tell(sessions(of: message.deviceID, message.instanceID), .superseded(by: message.connectionEpoch))
        case .rereadWaiting(let message):
            tell(sessions(of: message.deviceID, message.instanceID), .rereadWaiting)
        case .sessionsRevoked(let message): received(message, replyTo: replyTo)
        case .sessionInvalid(let message): received(message)
        case .disconnect(let message):
            tell(sessions(of: message.deviceID, message.instanceID), .disconnectedByOperator)
        case .parametersKept(let message):
            let user = TargetAddress(instanceID: InstanceID(message.instanceID), kind: .user, target: message.userID)
            tell(registry.sessions(listeningTo: user), .announcementDue)
        case .oplogs, nil: break
        }
    }

    private func sessions(of deviceID: String, _ instanceID: String) -> [SessionHandle] {
        registry.sessions(
            listeningTo: TargetAddress(instanceID: InstanceID(instanceID), kind: .device, target: deviceID))
    }

    /// Whom a notice is for, now; an immediate global push is left to the pacer.
    private func steps(of notice: ChannelNotice, replyTo: String?) -> [Step] {
        if notice.address.target.kind.isGlobal {
            recalled(notice)
            if notice.correlation == 0 {
                pace(notice)
                return []
            }
        }
        let sessions = registry.sessions(listeningTo: notice.address.target)
        guard notice.correlation > 0, let replyTo else {
            return sessions.map { Step(session: $0, notice: notice, count: nil) }
        }
        let count = TakenCount(sessions: sessions.count) { [bus] taken in
            bus.reply(
                .with {
                    $0.correlation = notice.correlation
                    $0.taken.oplogIds = taken.held
                    $0.taken.missedIds = taken.missed
                }, to: replyTo, through: .taken)
        }
        return sessions.map { Step(session: $0, notice: notice, count: count) }
    }

    /// Tells sessions of a channel's step, as of one that was just received.
    func take(_ notice: ChannelNotice, by sessions: [SessionHandle]) {
        take(sessions.map { Step(session: $0, notice: notice, count: nil) })
    }

    private func take(_ steps: [Step]) {
        SessionTurn.take(steps, on: \.session.eventLoop) { [self] steps in
            let taken = steps.map { $0.session.handler.value.take($0.notice, in: surroundings()) }
            // What several notices gave a session leaves in one write, by what holds then.
            for step in steps { step.session.handler.value.endTurn() }
            // The writer answers its caller on this: nothing that was recalled is left to be written.
            for (step, ids) in zip(steps, taken) { step.count?.add(ids) }
        }
    }
}
