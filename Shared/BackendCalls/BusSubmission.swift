package import BusMessages
import Foundation
package import ServiceKit
package import SyncModel

/// Submits pushes to the oplog writers over the bus, and once more those whose first answer leaves doubt.
///
/// The repeat is safe because the writer finds the first by its thirdMsgId; what is still in doubt then stays unknown.
package struct BusSubmission: PushSubmitting {
    /// Sends commands in one body, which keeps their order, and waits for each reply at most the queue's time-out.
    package typealias Send =
        @Sendable (_ commands: [Mss_Bus_V1_AppendCommand]) async -> [Result<Mss_Bus_V1_Reply, BusError>]

    /// How often a push is sent at most.
    static let attempts = 2

    private let send: Send

    /// Submits through anything that sends commands; tests do this.
    package init(send: @escaping Send) { self.send = send }

    /// Submits through the bus.
    package init(bus: MessageBus) {
        send = { commands in
            await bus.requests(.append, as: Mss_Bus_V1_AppendCommands.self, count: commands.count) { index, number in
                var command = commands[index]
                command.correlation = number
                return command
            }
        }
    }

    package func submit(_ pushes: [PushRequest], configuration: SyncConfiguration) async -> [PushOutcome] {
        #if KNOWN_BAD
            var commands = pushes.map { Self.command($0, configuration) }
        #else
            let commands = pushes.map { Self.command($0, configuration) }
        #endif
        var outcomes = [PushOutcome?](repeating: nil, count: pushes.count)
        var mayBeStored = [Bool](repeating: false, count: pushes.count)
        for _ in 0..<Self.attempts {
            let open = outcomes.indices.filter { outcomes[$0] == nil }
            if open.isEmpty { break }
            #if KNOWN_BAD
                if KnownBad.repeatsUnderAnotherKey.isOn {
                    for index in open where mayBeStored[index] { commands[index].oplog.thirdMessageID += "#" }
                }
            #endif
            for (index, result) in zip(open, await send(open.map { commands[$0] })) {
                switch result {
                case .success(let reply):
                    outcomes[index] = Self.outcome(of: reply)
                    mayBeStored[index] = true
                case .failure(let error):
                    #if KNOWN_BAD
                        if KnownBad.successOnTimeout.isOn { outcomes[index] = .duplicate(OplogID(1)) }
                        if KnownBad.notAttemptedOnTimeout.isOn { outcomes[index] = .notAttempted }
                        if outcomes[index] != nil { continue }
                    #endif
                    switch error.code {
                    case .unavailable: outcomes[index] = mayBeStored[index] ? .unknown : .notAttempted
                    // Also of one that the writer could not store: the broker may give it to another writer yet.
                    case .unanswered, .failed: mayBeStored[index] = true
                    }
                }
            }
        }
        return zip(outcomes, mayBeStored).map { outcome, mayBeStored in
            outcome ?? (mayBeStored ? .unknown : .notAttempted)
        }
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
        oplog.attributes = push.attributes.text
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
        case .ended: return .ended(OplogID(append.oplogID))
        case .duplicate: return .duplicate(OplogID(append.oplogID))
        case .refused: return .refused(append.detail)
        case .noConfiguration: return .noConfiguration
        case .uncertain: return .unknown
        case .unknown, .UNRECOGNIZED: return nil
        }
    }
}
