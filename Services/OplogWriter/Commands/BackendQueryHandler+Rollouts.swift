import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

// Changes and queries of roll-outs. `RolloutClock` announces a new stage to the gateways within a second.
extension BackendQueryHandler {
    /// The largest number of rows in one list.
    private static let rolloutsMax = 200

    /// Starts a roll-out.
    func start(
        _ request: Mss_Bus_V1_StartRollout, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let oplog = Oplog(bus: request.oplog)
        let plan = RolloutPlan(
            id: oplog.thirdMessageID, stages: request.stages.map { Int($0) },
            interval: request.intervalSeconds == 0 ? nil : .seconds(Int64(request.intervalSeconds)))
        if let fault = plan.fault ?? Self.fault(of: oplog) { return .with { $0.rollout.refusal = fault } }
        let (instanceID, bizType) = (InstanceID(request.instanceID), BizType(request.bizType))
        let start = RolloutStore.start(
            plan, of: instanceID, bizType, oplog, by: actor, in: stores.globalStore(of: instanceID))
        let outcome = try connection.run(start, within: Self.limit)
        let name = Rollout.Name(instanceID: instanceID, bizType: bizType, id: plan.id)
        return try answer(outcome, name, by: actor, on: connection)
    }

    /// The reason why the oplog of the stages is not valid; nil if it is valid. The console and `mssctl` check the same
    /// rules earlier, with texts of their own.
    private static func fault(of oplog: Oplog) -> String? {
        let units =
            oplog.isBinary
            ? (oplog.payload.count + 2) / 3 * 4 : String(decoding: oplog.payload, as: UTF8.self).utf16.count
        guard (1...Limits.payloadUnits).contains(units) else {
            return "payload has 1 to \(Limits.payloadUnits) characters, as Base64 if it is binary"
        }
        for version in [oplog.targeting.minimumVersion, oplog.targeting.maximumVersion].compactMap({ $0 }) {
            guard AppVersion(version) != nil, version.utf16.count <= Limits.versionUnits else {
                return "\(version) is not an app version such as 10.2.1"
            }
        }
        return nil
    }

    /// Widens, pauses or resumes a roll-out.
    func change(
        _ request: Mss_Bus_V1_ChangeRollout, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let name = Rollout.Name(bus: request.name)
        let store = stores.globalStore(of: name.instanceID)
        let query =
            switch request.way {
            case .widenToStage(let stage): RolloutStore.widen(name, to: Int(stage), by: actor, in: store)
            case .pause: RolloutStore.pause(name, by: actor, in: store)
            case .resume: RolloutStore.resume(name, by: actor, in: store)
            case .stop, nil: nil as Query<RolloutOutcome>?
            }
        guard let query else { return .with { $0.failure.reason = "this build does not know the command" } }
        return try answer(try connection.run(query, within: Self.limit), name, by: actor, on: connection)
    }

    private func answer(
        _ outcome: RolloutOutcome, _ name: Rollout.Name, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        guard outcome.isSuccess else { return .with { $0.rollout.refusal = outcome.refusal } }
        let rollout = try Self.afterCommit { () throws(PostgresError) in
            try connection.run(RolloutStore.rollout(name), within: Self.limit)
        }
        logger.info(
            "roll-out changed",
            metadata: ["instanceId": "\(name.instanceID)", "bizType": "\(name.bizType)", "actor": "\(actor.name)"])
        return .with {
            if let rollout { $0.rollout.rollout = rollout.bus }
            $0.rollout.unchanged = outcome == .unchanged
        }
    }

    /// Stops a roll-out and recalls its pushes. Gateways may be sending these pushes, so the reply waits until each
    /// gateway has confirmed the recall.
    func stop(
        _ name: Rollout.Name, for command: Command, replyTo: String, on connection: PostgresConnection
    ) throws(PostgresError) {
        let stop = RolloutStore.stop(name, by: command.by, in: stores.globalStore(of: name.instanceID))
        let stopped = try connection.run(stop, within: Self.limit)
        var reply = try answer(stopped.outcome, name, by: command.by, on: connection)
        reply.correlation = command.correlation
        let (kind, leaseRecord) = try Self.afterCommit { () throws(PostgresError) in
            let configuration = ControlStore.configuration(name.instanceID, name.bizType)
            return (
                try connection.run(configuration, within: Self.limit)?.kind,
                try connection.run(LeaseRecord.read, within: Self.limit)
            )
        }
        guard let kind, !stopped.recalls.isEmpty else { return bus.reply(reply, to: replyTo) }
        let target = TargetAddress(instanceID: name.instanceID, kind: kind.with(.global), target: "")
        let address = ChannelAddress(target: target, bizType: name.bizType)
        notifyGateways(of: leaseRecord) { correlation in
            .with { $0.oplogs = .init(stopped.recalls, of: address, correlation: correlation) }
        } whenAnswered: { [bus, reply] isCertain in
            var reply = reply
            reply.rollout.uncertain = !isCertain
            bus.reply(reply, to: replyTo)
        }
    }

    /// The newest roll-outs of an instance, or one roll-out with its figures.
    func rollouts(
        _ request: Mss_Bus_V1_RolloutsRequest, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        guard request.hasName else {
            let limit = min(max(Int(request.limit), 1), Self.rolloutsMax)
            let query = RolloutStore.rollouts(of: InstanceID(request.instanceID), limit: limit)
            let rollouts = try connection.run(query, within: Self.limit)
            return .with { $0.rollouts.rollouts = rollouts.map(\.bus) }
        }
        guard
            var rollout = try connection.run(RolloutStore.rollout(Rollout.Name(bus: request.name)), within: Self.limit)
        else { return .with { $0.rollouts = .init() } }
        let figures = try connection.run(RolloutStore.figures(of: rollout), within: Self.limit)
        for index in rollout.stages.indices {
            guard let figure = rollout.stages[index].oplogID.flatMap({ figures[$0] }) else { continue }
            rollout.stages[index].handedOut = figure.handedOut
            rollout.stages[index].confirmed = figure.confirmed
        }
        return .with { [rollout] in $0.rollouts.rollouts = [rollout.bus] }
    }
}
