import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Sends commands of signed-in accounts to the oplog writers, relays and session validators.
struct ControlService: Sendable {
    /// The longest wait for a change to reach this process's copy of the control data.
    private static let copyTimeout = Duration.seconds(2)

    let bus: MessageBus
    let directory: ControlDirectory

    /// Makes a change, then waits until this console's copy of the control data has it, at most for `copyTimeout`.
    /// `requireCopy` checks the result.
    ///
    /// - Throws: `stale` after another change of the same row; `refused` with the store's reason; `storeAway` when
    ///   nothing was changed; `notKnown` when the outcome is unknown.
    @discardableResult
    func change(
        by principal: RequestPrincipal, _ fill: @Sendable (inout Mss_Bus_V1_ControlCommand) -> Void
    ) async throws(ConsoleFault) -> Mss_Bus_V1_ControlReply {
        let client = client(of: principal)
        let reply = try await Self.reply { () throws(BusError) in try await client.control(fill).control }
        guard reply.refusal.isEmpty else { throw reply.stale ? .stale : .refused(reply.refusal) }
        let deadline = ContinuousClock.now + Self.copyTimeout
        while directory.version < reply.version, .now < deadline {
            try? await Task.sleep(for: .milliseconds(5))
        }
        return reply
    }

    /// Call it before a route reads its own change.
    ///
    /// - Throws: `notSeenYet` when this console's copy of the control data does not have the change yet.
    func requireCopy(of made: Mss_Bus_V1_ControlReply) throws(ConsoleFault) {
        guard directory.version >= made.version else { throw .notSeenYet }
    }

    /// Sends a backend query about pushes or devices.
    func operate(
        by principal: RequestPrincipal, _ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void
    ) async throws(ConsoleFault) -> Mss_Bus_V1_Reply {
        let client = client(of: principal)
        return try await Self.reply { () throws(BusError) in try await client.operate(fill) }
    }

    /// Sends a command about device operations to the relays.
    func relay(
        by principal: RequestPrincipal, _ fill: @Sendable (inout Mss_Bus_V1_RelayCommand) -> Void
    ) async throws(ConsoleFault) -> Mss_Bus_V1_Reply {
        let client = client(of: principal)
        return try await Self.reply { () throws(BusError) in try await client.relay(fill) }
    }

    /// One roll-out with its figures; nil when the name is unknown.
    func rollout(_ name: Rollout.Name, for principal: RequestPrincipal) async throws(ConsoleFault) -> Rollout? {
        let client = client(of: principal)
        return try await Self.reply { () throws(BusError) in try await client.rollout(name) }
    }

    /// Requests the tenant's verdict on a user session from the session validators.
    func verdict(
        of session: String, user: String, instance: InstanceID, for principal: RequestPrincipal
    ) async throws(ConsoleFault) -> Mss_Bus_V1_ValidateReply {
        let client = client(of: principal)
        return try await Self.reply { () throws(BusError) in
            try await client.verdict(of: session, user: user, instance: instance.text)
        }
    }

    private func client(of principal: RequestPrincipal) -> CommandClient {
        CommandClient(bus: bus, actor: principal.actor)
    }

    private static func reply<Reply>(
        _ request: () async throws(BusError) -> Reply
    ) async throws(ConsoleFault) -> Reply {
        do throws(BusError) {
            return try await request()
        } catch {
            switch error.code {
            case .unavailable, .failed(notAttempted: true): throw .storeAway
            case .unanswered, .failed: throw .notKnown
            }
        }
    }

    // MARK: Copy of the control data

    /// The item at the revision that the caller wants to change; members that the caller leaves out keep its values.
    ///
    /// - Parameters:
    ///   - revision: the revision that the caller has read. It can be newer than this console's copy, so the call waits
    ///     for the copy, at most for `copyTimeout`.
    ///   - find: reads the item from the copy.
    /// - Throws: `stale` when the item has another revision.
    func current<Thing>(
        _ revision: Int, _ ofThing: (Thing) -> Int, _ find: () throws(ConsoleFault) -> Thing
    ) async throws(ConsoleFault) -> Thing {
        let deadline = ContinuousClock.now + Self.copyTimeout
        while true {
            let thing = try find()
            if ofThing(thing) == revision { return thing }
            guard ofThing(thing) < revision, .now < deadline else { throw .stale }
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    /// An instance; throws when it does not exist.
    func instance(_ id: InstanceID) throws(ConsoleFault) -> Instance {
        guard directory.isLoaded else { throw .starting }
        guard let instance = directory.instance(id) else { throw .noSuch("instance", id.text) }
        return instance
    }

    /// A configuration; throws when it does not exist.
    func configuration(_ id: InstanceID, _ bizType: String) throws(ConsoleFault) -> SyncConfiguration {
        guard directory.isLoaded else { throw .starting }
        guard let configuration = directory.configuration(id, BizType(bizType)) else {
            throw .noSuch("configuration", bizType)
        }
        return configuration
    }
}
