import BusMessages
import NIOCore
import SyncModel
import Synchronization

/// A session as other threads reach it: its event loop, and the handler that only that loop touches.
struct SessionHandle: Sendable {
    /// Unique in this process.
    let number: UInt64
    let eventLoop: any EventLoop
    let handler: NIOLoopBound<DeviceHandler>
}

/// Which sessions of this gateway listen for which targets. Looked at by the bus thread, changed by event loops.
final class SessionRegistry: Sendable {

    private struct State {
        var sessions: [UInt64: SessionHandle] = [:]
        var listeners: [TargetAddress: Set<UInt64>] = [:]
        var targets: [UInt64: [TargetAddress]] = [:]
    }

    private let state = Mutex(State())

    /// Adds a session that listens for nothing yet.
    func add(_ session: SessionHandle) { state.withLock { $0.sessions[session.number] = session } }

    /// Removes a session and what it listens for.
    func remove(_ number: UInt64) {
        state.withLock { state in
            state.sessions[number] = nil
            Self.stopListening(number, in: &state)
        }
    }

    /// Makes the session listen for these targets and no others.
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

    /// So many sessions, any.
    func some(_ count: Int) -> [SessionHandle] { state.withLock { Array($0.sessions.values.prefix(count)) } }

    /// How many sessions there are.
    var count: Int { state.withLock { $0.sessions.count } }

    /// How many sessions of each of these instances there are: every open one listens to its instance's global pushes.
    func counts(of instances: [InstanceID]) -> [InstanceID: Int] {
        state.withLock { state in
            Dictionary(
                uniqueKeysWithValues: instances.map { instance in
                    let everybody = TargetAddress(instanceID: instance, kind: .globalDevice, target: "")
                    return (instance, state.listeners[everybody]?.count ?? 0)
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
