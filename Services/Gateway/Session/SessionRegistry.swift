import BusMessages
import NIOCore
import SyncModel
import Synchronization

/// Access to a session from other threads: its event loop, and the handler that only this loop may use.
struct SessionHandle: Sendable {
    /// Unique in this process.
    let number: UInt64
    let eventLoop: any EventLoop
    let handler: NIOLoopBound<DeviceHandler>

    /// Passes an event to the session, in a turn of its event loop.
    func handle(_ event: SessionEvent) {
        eventLoop.execute { handler.value.handle(event) }
    }
}

/// The sessions of this gateway and their targets. The bus thread reads it, event loops change it.
final class SessionRegistry: Sendable {

    private struct State {
        var sessions: [UInt64: SessionHandle] = [:]
        var listeners: [TargetAddress: Set<UInt64>] = [:]
        var targets: [UInt64: [TargetAddress]] = [:]
    }

    private let state = Mutex(State())

    /// Adds a session without targets.
    func add(_ session: SessionHandle) { state.withLock { $0.sessions[session.number] = session } }

    /// Removes a session and its targets.
    func remove(_ number: UInt64) {
        state.withLock { state in
            state.sessions[number] = nil
            Self.stopListening(number, in: &state)
        }
    }

    /// Replaces the targets of a session.
    func listen(_ number: UInt64, to targets: [TargetAddress]) {
        state.withLock { state in
            guard state.sessions[number] != nil else { return }
            Self.stopListening(number, in: &state)
            state.targets[number] = targets
            for target in targets { state.listeners[target, default: []].insert(number) }
        }
    }

    /// The sessions that listen for a target.
    func sessions(listeningTo target: TargetAddress) -> [SessionHandle] {
        state.withLock { state in (state.listeners[target] ?? []).compactMap { state.sessions[$0] } }
    }

    /// Every session.
    var all: [SessionHandle] { state.withLock { Array($0.sessions.values) } }

    /// Any `count` sessions.
    func some(_ count: Int) -> [SessionHandle] { state.withLock { Array($0.sessions.values.prefix(count)) } }

    /// The number of sessions.
    var count: Int { state.withLock { $0.sessions.count } }

    /// The number of sessions of each instance. Every open session listens to its instance's global pushes.
    func counts(of instances: [InstanceID]) -> [InstanceID: Int] {
        state.withLock { state in
            Dictionary(
                uniqueKeysWithValues: instances.map { instance in
                    let target = TargetAddress(instanceID: instance, kind: .globalDevice, target: "")
                    return (instance, state.listeners[target]?.count ?? 0)
                })
        }
    }

    private static func stopListening(_ number: UInt64, in state: inout State) {
        for target in state.targets.removeValue(forKey: number) ?? [] {
            state.listeners[target]?.remove(number)
            if state.listeners[target]?.isEmpty == true { state.listeners[target] = nil }
        }
    }
}
