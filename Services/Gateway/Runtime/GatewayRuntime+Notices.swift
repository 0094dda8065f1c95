import AMQP
import BusMessages
import Logging
import Metrics
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

// Notices from oplog writers and operators.
extension GatewayRuntime {
    /// A notice of a channel for one session.
    private struct Step: Sendable {
        let session: SessionHandle
        let notice: ChannelNotice
        /// Collects the outcome for a writer that waits for it; nil: it does not wait.
        let count: NoticeReplyCollector?
    }

    /// Processes bodies of notices, on the bus thread. The channel notices of consecutive bodies reach the sessions in
    /// one turn of each event loop.
    func received(_ deliveries: [AMQPDelivery]) {
        var steps: [Step] = []
        for delivery in deliveries {
            guard let notices = delivery.notices else {
                logger.error("dropped an unreadable body of notices", metadata: ["bytes": "\(delivery.body.count)"])
                continue
            }
            if notices.refused > 0 {
                refusedNotices.increment(by: notices.refused)
                logger.error(
                    "dropped notices from an unauthorized exchange",
                    metadata: ["exchange": "\(delivery.exchange)", "count": "\(notices.refused)"])
            }
            for notice in notices.taken {
                if case .oplogs(let message)? = notice.body {
                    contexts.databaseTime.observe(message)
                    if let notice = ChannelNotice(bus: message) {
                        steps += self.steps(of: notice, replyTo: delivery.replyTo)
                    }
                } else {
                    // Sessions receive all notices in the order of their arrival.
                    deliver(steps)
                    steps = []
                    received(notice, replyTo: delivery.replyTo)
                }
            }
        }
        deliver(steps)
    }

    /// Processes a notice about the head of a channel.
    func received(_ notice: ChannelNotice) { deliver(steps(of: notice, replyTo: nil)) }

    private func received(_ notice: Mss_Bus_V1_GatewayNotice, replyTo: String?) {
        switch notice.body {
        case .superseded(let message):
            notify(sessions(of: message.deviceID, message.instanceID), .superseded(by: message.connectionEpoch))
        case .rereadWaiting(let message):
            notify(sessions(of: message.deviceID, message.instanceID), .rereadWaiting)
        case .sessionsRevoked(let message): received(message, replyTo: replyTo)
        case .sessionInvalid(let message): received(message)
        case .disconnect(let message):
            notify(sessions(of: message.deviceID, message.instanceID), .disconnectedByOperator)
        case .parametersKept(let message):
            let user = TargetAddress(instanceID: InstanceID(message.instanceID), kind: .user, target: message.userID)
            notify(registry.sessions(listeningTo: user), .registrationDue)
        case .oplogs, nil: break
        }
    }

    private func sessions(of deviceID: String, _ instanceID: String) -> [SessionHandle] {
        registry.sessions(
            listeningTo: TargetAddress(instanceID: InstanceID(instanceID), kind: .device, target: deviceID))
    }

    /// The sessions that a notice is for. An immediate global push goes to the throttle instead.
    private func steps(of notice: ChannelNotice, replyTo: String?) -> [Step] {
        if notice.address.target.kind.isGlobal {
            recalled(notice)
            if notice.correlation == 0 {
                throttle(notice)
                return []
            }
        }
        let sessions = registry.sessions(listeningTo: notice.address.target)
        guard notice.correlation > 0, let replyTo else {
            return sessions.map { Step(session: $0, notice: notice, count: nil) }
        }
        let count = NoticeReplyCollector(sessions: sessions.count) { [bus] taken in
            bus.reply(
                .with {
                    $0.correlation = notice.correlation
                    $0.taken.oplogIds = taken.held
                    $0.taken.missedIds = taken.missed
                }, to: replyTo, through: .taken)
        }
        return sessions.map { Step(session: $0, notice: notice, count: count) }
    }

    /// Passes a channel notice to sessions.
    func deliver(_ notice: ChannelNotice, to sessions: [SessionHandle]) {
        deliver(sessions.map { Step(session: $0, notice: notice, count: nil) })
    }

    private func deliver(_ steps: [Step]) {
        EventLoopBatch.execute(steps, on: \.session.eventLoop) { [self] steps in
            let taken = steps.map { $0.session.handler.value.process($0.notice, in: contexts.make()) }
            // One write sends the output of several notices. What waits from an earlier one is checked again before.
            for step in steps { step.session.handler.value.endTurn() }
            // The writer answers its caller after this reply: no recalled data waits to be written any more.
            for (step, ids) in zip(steps, taken) { step.count?.add(ids) }
        }
    }
}
