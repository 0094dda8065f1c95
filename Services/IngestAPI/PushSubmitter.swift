import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization

/// Decides what is left to decide about a push, hands it to an oplog writer and turns the reply into the answer.
final class PushSubmitter: Sendable {
    private let bus: MessageBus
    private let directory: ControlDirectory
    private let inFlight = Atomic<Int>(0)
    private let inFlightMax: Int

    /// - Parameter inFlightMax: pushes that may wait for their reply; more are refused as overload.
    init(bus: MessageBus, directory: ControlDirectory, inFlightMax: Int) {
        self.bus = bus
        self.directory = directory
        self.inFlightMax = inFlightMax
    }

    /// Whether pushes can be taken now.
    var isReady: Bool { bus.isConnected && directory.isLoaded }

    /// The last checks of H3, then the store's.
    func submit(_ push: PushRequest, scope: PushRequest.Scope) async -> PushAnswer {
        guard directory.isLoaded else { return .notNow("the control data is not loaded yet") }
        guard let instance = directory.instance(push.instanceID), instance.isEnabled else {
            return PushAnswer(code: .bizNotOnline, detail: "there is no instance \(push.instanceID)")
        }
        guard let configuration = directory.configuration(push.instanceID, push.bizType), configuration.isOnline else {
            return PushAnswer(code: .bizNotOnline, detail: "there is no configuration \(push.bizType) online")
        }
        guard configuration.kind.isGlobal == (scope == .global) else {
            let endpoint = configuration.kind.isGlobal ? "/webapi/sync/global" : "/webapi/sync/single"
            return PushAnswer(code: .notSupportGlobal, detail: "push \(push.bizType) through \(endpoint)")
        }
        let waiting = inFlight.add(1, ordering: .relaxed).newValue
        defer { inFlight.subtract(1, ordering: .relaxed) }
        guard waiting <= inFlightMax else { return .notNow("too many pushes are under way") }
        return await store(push, configuration)
    }

    /// Asks, and asks once more when the outcome is unknown: the same thirdMsgId makes that safe (spec H5).
    private func store(_ push: PushRequest, _ configuration: SyncConfiguration) async -> PushAnswer {
        var wasSent = false
        for _ in 0..<2 {
            do throws(BusError) {
                let reply = try await bus.request(.append, as: Mss_Bus_V1_AppendCommands.self) { correlation in
                    Self.command(push, configuration, correlation)
                }
                return answer(reply.append, to: push, configuration)
            } catch {
                switch error.code {
                case .unavailable where !wasSent: return .notNow("the message broker is away")
                case .unavailable: break
                case .unanswered, .failed(notAttempted: false): wasSent = true
                case .failed(notAttempted: true) where !wasSent:
                    return .notNow("the store is away")
                case .failed(notAttempted: true): break
                }
            }
        }
        return PushAnswer(
            code: .systemError, detail: "the outcome is unknown; repeat the call with the same thirdMsgId")
    }

    private static func command(
        _ push: PushRequest, _ configuration: SyncConfiguration, _ correlation: UInt64
    ) -> Mss_Bus_V1_AppendCommand {
        let target = TargetAddress(instanceID: push.instanceID, kind: configuration.kind, target: push.linkToken)
        let oplog = Oplog(
            id: .zero, thirdMessageID: push.thirdMessageID, payload: push.payload, isBinary: push.isBinary,
            targeting: push.targeting, validUntil: push.validUntil ?? WallTime(milliseconds: 0),
            createdAt: WallTime(milliseconds: 0), isPersistent: configuration.isPersistent)
        return .with {
            $0.correlation = correlation
            $0.target = target.bus
            $0.bizType = push.bizType.text
            $0.oplog = oplog.bus
            $0.checksSession = configuration.checksSession
            $0.singleDevice = configuration.kind == .user && !configuration.isMultiDevice
        }
    }

    private func answer(
        _ reply: Mss_Bus_V1_AppendReply, to push: PushRequest, _ configuration: SyncConfiguration
    ) -> PushAnswer {
        let id = OplogID(reply.oplogID)
        switch reply.outcome {
        case .duplicate:
            return PushAnswer(code: .duplicatedBizID, oplogID: id, detail: "thirdMsgId was pushed before; this is its oplog")
        case .stored:
            if configuration.kind.isGlobal { return PushAnswer(code: .success, oplogID: id) }
            if let end = push.validUntil, end <= .now {
                return PushAnswer(code: .notOnline, oplogID: id, detail: "validTimeEnd is in the past: it will never be delivered")
            }
            return PushAnswer(code: reply.online ? .success : .notOnline, oplogID: id)
        case .refused:
            return PushAnswer(code: .argsIsNull, detail: reply.detail)
        default:
            return PushAnswer(code: .systemError, detail: "the store gave an answer that this build does not know")
        }
    }
}

extension PushAnswer {
    /// Nothing was attempted: come back soon.
    static func notNow(_ why: String) -> PushAnswer {
        PushAnswer(code: .systemError, detail: "\(why); try again in a moment", isAttempted: false)
    }
}
