import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Asks the oplog writers for changes and answers, in the name of whoever asks the console.
struct ControlDesk: Sendable {
    /// How long a page waits for its own change to be in this process's copy of the control data.
    private static let patience = Duration.seconds(2)

    let bus: MessageBus
    let directory: ControlDirectory

    /// Makes a change, and returns when this console goes by it, or has not for as long as a page waits: `requireCopy`
    /// tells.
    ///
    /// - Throws: `stale` when somebody else was first, `refused` with the store's reason, `storeAway` when nothing was
    ///   done, `notKnown` when it may have been.
    @discardableResult
    func change(
        by visitor: Visitor, _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws(ConsoleFault) -> Mss_Bus_V1_ControlReply {
        let actor = visitor.actor
        let reply = try await ask { () throws(BusError) in
            try await bus.request(.control, as: Mss_Bus_V1_ControlCommands.self) { correlation in
                var command = Mss_Bus_V1_ControlCommand()
                command.correlation = correlation
                command.by = actor
                fill(&command)
                return command
            }
        }
        guard reply.control.refusal.isEmpty else {
            throw reply.control.stale ? .stale : .refused(reply.control.refusal)
        }
        let deadline = ContinuousClock.now + Self.patience
        while directory.version < reply.control.version, .now < deadline {
            try? await Task.sleep(for: .milliseconds(5))
        }
        return reply.control
    }

    /// For a route that goes on to look at what it has changed.
    ///
    /// - Throws: `notSeenYet` when this console's copy of the control data does not have the change.
    func requireCopy(of made: Mss_Bus_V1_ControlReply) throws(ConsoleFault) {
        guard directory.version >= made.version else { throw .notSeenYet }
    }

    /// Asks about pushes and devices, or acts on them.
    func operate(
        by visitor: Visitor, _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws(ConsoleFault) -> Mss_Bus_V1_Reply {
        let actor = visitor.actor
        return try await ask { () throws(BusError) in
            try await bus.request(.people, as: Mss_Bus_V1_OperationCommands.self) { correlation in
                var command = Mss_Bus_V1_OperationCommand()
                command.correlation = correlation
                command.by = actor
                fill(&command)
                return command
            }
        }
    }

    /// Asks relays about operations of devices, or has one done after all.
    func relay(
        by visitor: Visitor, _ fill: @Sendable (inout Mss_Bus_V1_RelayCommand) -> Void
    ) async throws(ConsoleFault) -> Mss_Bus_V1_Reply {
        let actor = visitor.actor
        return try await ask { () throws(BusError) in
            try await bus.request(.relay, as: Mss_Bus_V1_RelayCommands.self) { correlation in
                var command = Mss_Bus_V1_RelayCommand()
                command.correlation = correlation
                command.by = actor
                fill(&command)
                return command
            }
        }
    }

    /// One roll-out with its figures; nil: there is none of that name.
    func rollout(_ name: Rollout.Name, for visitor: Visitor) async throws(ConsoleFault) -> Rollout? {
        let reply = try await operate(by: visitor) {
            $0.rollouts.instanceID = name.instanceID.text
            $0.rollouts.name = name.bus
        }
        return reply.rollouts.rollouts.first.flatMap { Rollout(bus: $0) }
    }

    /// Asks the tenant about a session, through the session validators.
    func validate(
        _ build: @Sendable (UInt64) -> Mss_Bus_V1_ValidateCommand
    ) async throws(ConsoleFault) -> Mss_Bus_V1_ValidateReply {
        let reply = try await ask { () throws(BusError) in
            try await bus.request(.validate, as: Mss_Bus_V1_ValidateCommands.self, build)
        }
        return reply.validate
    }

    private func ask(
        _ request: () async throws(BusError) -> Mss_Bus_V1_Reply
    ) async throws(ConsoleFault) -> Mss_Bus_V1_Reply {
        do throws(BusError) {
            return try await request()
        } catch {
            switch error.code {
            case .unavailable, .failed(notAttempted: true): throw .storeAway
            case .unanswered, .failed: throw .notKnown
            }
        }
    }

    // MARK: What there is

    /// The thing in the state that somebody saw who wants to change it: what he leaves out is taken from there.
    ///
    /// - Parameters:
    ///   - revision: that he saw. This console's copy may be a moment behind another's.
    ///   - find: looks into the copy.
    /// - Throws: `stale` when the thing has another revision.
    func current<Thing>(
        _ revision: Int, _ ofThing: (Thing) -> Int, _ find: () throws(ConsoleFault) -> Thing
    ) async throws(ConsoleFault) -> Thing {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let thing = try find()
            if ofThing(thing) == revision { return thing }
            guard ofThing(thing) < revision, .now < deadline else { throw .stale }
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// An instance.
    func instance(_ id: InstanceID) throws(ConsoleFault) -> Instance {
        guard directory.isLoaded else { throw .starting }
        guard let instance = directory.instance(id) else { throw .noSuch("instance", id.text) }
        return instance
    }

    /// A configuration.
    func configuration(_ id: InstanceID, _ bizType: String) throws(ConsoleFault) -> SyncConfiguration {
        guard directory.isLoaded else { throw .starting }
        guard let configuration = directory.configuration(id, BizType(bizType)) else {
            throw .noSuch("configuration", bizType)
        }
        return configuration
    }
}
