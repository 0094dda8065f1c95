import BackendCalls
import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

// Roll-outs: the preview of the first stage, and the start.
extension PushRoutes {
    /// The roll-out of a global configuration with the id of a push; nil when there is none.
    func rollout(
        _ id: String, of configuration: SyncConfiguration, _ principal: RequestPrincipal
    ) async throws(ConsoleFault) -> Rollout? {
        guard configuration.kind.isGlobal else { return nil }
        let name = Rollout.Name(
            instanceID: configuration.instanceID, bizType: configuration.bizType, id: ThirdMessageID(id))
        return try await control.rollout(name, for: principal)
    }

    /// The number of connected devices that receive the first stage, now or when their apps come to the foreground.
    func reached(
        by plan: RolloutPlan, _ call: PushInput.Call, _ configuration: SyncConfiguration, _ principal: RequestPrincipal
    ) async throws(ConsoleFault) -> Int64 {
        var oplog = Self.oplog(call)
        oplog.thirdMessageID = plan.stageID(1).text
        oplog.shareStart = UInt32(plan.share(of: 1).start)
        oplog.shareSize = UInt32(plan.share(of: 1).size)
        let target = TargetAddress(instanceID: configuration.instanceID, kind: configuration.kind, target: "")
        let append = Mss_Bus_V1_AppendCommand.with {
            $0.target = target.bus
            $0.bizType = configuration.bizType.text
            $0.oplog = oplog
        }
        let reply = try await control.operate(by: principal) { $0.dryRun = append }
        let states: Set = [DeliveryState.onItsWay, .waitsForForeground]
        return reply.trace.counts.reduce(0) { sum, count in
            DeliveryState(rawValue: Int(count.state)).map(states.contains) == true ? sum + count.devices : sum
        }
    }

    /// Starts a roll-out. The store makes the first stage and the audit record in one transaction.
    func start(
        _ plan: RolloutPlan, _ call: PushInput.Call, _ configuration: SyncConfiguration, _ request: ConsoleRequest
    ) async throws(ConsoleFault) -> ConsoleAnswer {
        let command = Mss_Bus_V1_StartRollout.with {
            $0.instanceID = configuration.instanceID.text
            $0.bizType = configuration.bizType.text
            $0.oplog = Self.oplog(call)
            $0.stages = plan.stages.map { UInt32($0) }
            $0.intervalSeconds = UInt32(clamping: plan.interval?.components.seconds ?? 0)
        }
        let reply = try await control.operate(by: try request.signedIn()) { $0.startRollout = command }
        let rollout = try RolloutRoutes.rollout(of: reply)
        let code: ResultCode = reply.rollout.unchanged ? .duplicatedBizID : .success
        return .json(
            Answer(
                success: code.isSuccess, msg: code.rawValue, retryable: code.isRetryable,
                detail: request.words.text(reply.rollout.unchanged ? "result.\(code.rawValue)" : "rolloutStarted"),
                thirdMsgId: call.thirdMsgId, oplogId: rollout.stages.first?.oplogID?.value, dryRun: false, reached: 0,
                states: [], trace: nil, rollout: RolloutItem.page(rollout.name)),
            status: reply.rollout.unchanged ? 200 : 201)
    }

    private static func oplog(_ call: PushInput.Call) -> Mss_Bus_V1_Oplog {
        .with {
            $0.thirdMessageID = call.thirdMsgId
            $0.payload = call.payload.map { Data($0.utf8) } ?? Data(base64Encoded: call.binaryPayload ?? "") ?? Data()
            $0.binary = call.payload == nil
            $0.operatingSystem = Mss_Bus_V1_OperatingSystem(
                call.osType.flatMap { SyncModel.OperatingSystem(name: $0) })
            $0.minimumVersion = call.appMinVersion ?? ""
            $0.maximumVersion = call.appMaxVersion ?? ""
            $0.validUntilMs = call.validTimeEnd ?? 0
        }
    }
}
