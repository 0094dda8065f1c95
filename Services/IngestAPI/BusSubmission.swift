import BusMessages
import Foundation
import ServiceKit
import SyncModel

/// Submits a push to the oplog writers over the bus, and once more when the first answer leaves doubt.
///
/// The repeat is safe because the writer finds the first by its thirdMsgId; what is still in doubt then stays unknown.
struct BusSubmission: PushSubmitting {
    /// Sends one command and waits for its reply, at most the queue's time-out.
    typealias Send =
        @Sendable (_ build: @escaping @Sendable (UInt64) -> Mss_Bus_V1_AppendCommand) async throws(BusError)
        -> Mss_Bus_V1_Reply

    /// How often a push is sent at most.
    static let attempts = 2

    private let send: Send

    /// Submits through anything that sends commands; tests do this.
    init(send: @escaping Send) { self.send = send }

    /// Submits through the bus.
    init(bus: MessageBus) {
        send = { build throws(BusError) in
            try await bus.request(.append, as: Mss_Bus_V1_AppendCommands.self, build)
        }
    }

    func submit(_ push: PushRequest, configuration: SyncConfiguration) async -> PushOutcome {
        let command = Self.command(push, configuration)
        var mayBeStored = false
        for _ in 0..<Self.attempts {
            do throws(BusError) {
                let reply = try await send { correlation in
                    var numbered = command
                    numbered.correlation = correlation
                    return numbered
                }
                if let outcome = Self.outcome(of: reply) { return outcome }
                mayBeStored = true
            } catch {
                switch error.code {
                case .unavailable: return mayBeStored ? .unknown : .notAttempted
                case .unanswered: mayBeStored = true
                case .failed(let notAttempted): mayBeStored = mayBeStored || !notAttempted
                }
            }
        }
        return mayBeStored ? .unknown : .notAttempted
    }

    /// The command that stores a push as its configuration wants; its correlation is given when it is sent.
    static func command(_ push: PushRequest, _ configuration: SyncConfiguration) -> Mss_Bus_V1_AppendCommand {
        let kind = configuration.kind
        let target = TargetAddress(
            instanceID: push.instanceID, kind: kind, target: kind.isGlobal ? "" : push.linkToken)
        var oplog = Mss_Bus_V1_Oplog()
        oplog.thirdMessageID = push.thirdMessageID.text
        oplog.payload = Data(push.payload)
        oplog.binary = push.isBinary
        oplog.operatingSystem = Mss_Bus_V1_OperatingSystem(push.targeting.operatingSystem)
        oplog.minimumVersion = push.targeting.minimumVersion ?? ""
        oplog.maximumVersion = push.targeting.maximumVersion ?? ""
        oplog.validUntilMs = push.validUntil?.milliseconds ?? 0
        var command = Mss_Bus_V1_AppendCommand()
        command.target = target.bus
        command.bizType = push.bizType.text
        command.oplog = oplog
        return command
    }

    /// What a reply says; nil when it says nothing that this build understands.
    static func outcome(of reply: Mss_Bus_V1_Reply) -> PushOutcome? {
        guard case .append(let append)? = reply.body else { return nil }
        switch append.outcome {
        case .stored: return .stored(OplogID(append.oplogID), online: append.online)
        case .duplicate: return .duplicate(OplogID(append.oplogID))
        case .refused: return .refused(append.detail)
        case .noConfiguration: return .noConfiguration
        case .uncertain: return .unknown
        case .unknown, .UNRECOGNIZED: return nil
        }
    }
}
