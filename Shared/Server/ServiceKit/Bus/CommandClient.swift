package import BusMessages
import SwiftProtobuf
package import SyncModel

/// Sends the commands of one actor to the oplog writers, the relays and the session validators, each once, and returns
/// their replies. `mssctl`, the console and the backend API use it. Each decides what follows a `BusError`.
package struct CommandClient: Sendable {
    private let bus: MessageBus
    private let actor: OperationActor

    /// - Parameter actor: the actor in the audit records.
    package init(bus: MessageBus, actor: OperationActor) {
        self.bus = bus
        self.actor = actor
    }

    /// Sends a change or a query of the control data.
    ///
    /// - Parameter queue: `control`; `snapshot` for a request of the whole control data.
    package func control(
        on queue: CommandQueue = .control, _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws(BusError) -> Mss_Bus_V1_Reply {
        try await bus.request(queue, as: Mss_Bus_V1_ControlCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.by = actor
                fill(&$0)
            }
        }
    }

    /// Sends a backend query or a command about devices.
    ///
    /// - Parameter queue: `people` for operators, `operation` for backends.
    package func operate(
        on queue: CommandQueue = .people, _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws(BusError) -> Mss_Bus_V1_Reply {
        try await bus.request(queue, as: Mss_Bus_V1_OperationCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.by = actor
                fill(&$0)
            }
        }
    }

    /// Sends a command about device operations.
    package func relay(
        _ fill: @Sendable (inout Mss_Bus_V1_RelayCommand) -> Void
    ) async throws(BusError) -> Mss_Bus_V1_Reply {
        try await bus.request(.relay, as: Mss_Bus_V1_RelayCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.by = actor
                fill(&$0)
            }
        }
    }

    /// Requests the tenant's verdict on a user session, as gateways do.
    package func verdict(
        of session: String, user: String, instance: String
    ) async throws(BusError) -> Mss_Bus_V1_ValidateReply {
        try await bus.request(.validate, as: Mss_Bus_V1_ValidateCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.instanceID = instance
                $0.userID = user
                $0.sessionID = session
            }
        }.validate
    }

    /// One roll-out with its figures; nil when the name is unknown.
    package func rollout(_ name: Rollout.Name) async throws(BusError) -> Rollout? {
        let reply = try await operate {
            $0.rollouts.instanceID = name.instanceID.text
            $0.rollouts.name = name.bus
        }
        return reply.rollouts.rollouts.first.flatMap { Rollout(bus: $0) }
    }
}
