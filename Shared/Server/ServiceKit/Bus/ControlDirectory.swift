import AMQP
import BusMessages
import Logging
import Metrics
import ServiceLifecycle
package import SyncModel
import Synchronization

/// This process's copy of instances and configurations, at most 2 s old (D17).
///
/// An announcement causes a request, and so does a call before it is refused. A request every second finds lost
/// announcements.
package final class ControlDirectory: Service, Sendable {
    private struct State {
        var snapshot = ControlSnapshot()
        /// When the request was sent whose reply last confirmed the version.
        var confirmedAt: ContinuousClock.Instant?
        var instanceOfBackendKey: [String: InstanceID] = [:]
        /// Copies of the ids. Comparing a string with one that shares its storage is faster, which would show in the
        /// time of a check.
        var backendKeys: [String] = []
    }

    /// The pause after each request. So calls that ask for newer data, however many, cost the writers little.
    private static let pause = Duration.milliseconds(20)

    private let state = Mutex(State())
    /// The callers of `refreshed()` that wait for a request to be sent; nil after shutdown.
    let waiting = Mutex<[CheckedContinuation<Bool, Never>]?>([])
    private let wakeUps: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)
    private let bus: MessageBus
    private let purpose: AppKey.Purpose?
    private let onLoaded: @Sendable () -> Void
    private let versionGauge = Gauge(label: "mss_control_version")
    private let logger: Logger

    /// - Parameters:
    ///   - purpose: the purpose of the keys to request; nil: all keys without their secrets.
    ///   - wakeUps: yields after an announcement.
    ///   - onLoaded: called after each applied snapshot.
    init(
        bus: MessageBus, keysFor purpose: AppKey.Purpose?,
        wakeUps: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation), logger: Logger,
        onLoaded: @escaping @Sendable () -> Void
    ) {
        self.bus = bus
        self.purpose = purpose
        self.wakeUps = wakeUps
        self.logger = logger
        self.onLoaded = onLoaded
    }

    /// The last applied snapshot.
    package var snapshot: ControlSnapshot { state.withLock { $0.snapshot } }

    /// The version of the last applied snapshot; 0 before the first.
    package var version: Int64 { snapshot.version }

    /// Whether a snapshot has been applied.
    package var isLoaded: Bool { version > 0 }

    /// Whether this copy was confirmed as the newest within `Limits.controlAge`.
    package var isCurrent: Bool {
        let confirmedAt = state.withLock { $0.confirmedAt }
        return confirmedAt.map { $0.duration(to: .now) <= Limits.controlAge } ?? false
    }

    /// An instance, enabled or not.
    package func instance(_ id: InstanceID) -> Instance? { snapshot.instance(id) }

    /// The instance that owns the live backend key with this id.
    package func instance(ofBackendKey keyID: String) -> Instance? {
        state.withLock { state in state.instanceOfBackendKey[keyID].flatMap { state.snapshot.instance($0) } }
    }

    /// The id of a random live backend key; empty when there is none.
    package var someBackendKey: String { state.withLock { $0.backendKeys.randomElement() ?? "" } }

    /// A configuration, online or not.
    package func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
        snapshot.configuration(instanceID, bizType)
    }

    /// Every instance, in the order of their ids.
    package var instances: [Instance] { snapshot.instances }

    /// Every configuration of an instance, in the order of their Sync IDs.
    package func configurations(of instanceID: InstanceID) -> [SyncConfiguration] {
        snapshot.configurations(of: instanceID)
    }

    /// Requests the control data after this call, and waits until the reply is applied.
    ///
    /// Callers that wait share one request. It begins after the one in flight has ended. Each takes at most 2 s and a
    /// tick of the bus.
    ///
    /// - Returns: false if no writer replied, or this process stops.
    package func refreshed() async -> Bool {
        await withCheckedContinuation { continuation in
            let isWaiting = waiting.withLock { $0?.append(continuation) != nil }
            if isWaiting {
                wakeUps.continuation.yield()
            } else {
                continuation.resume(returning: false)
            }
        }
    }

    /// Keeps the copy current until shutdown.
    package func run() async throws {
        defer { refuseCallers() }
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await _ in self.wakeUps.stream {
                        await self.refresh()
                        try? await Task.sleep(for: Self.pause)
                    }
                }
                group.addTask {
                    while !Task.isCancelled, !Task.isShuttingDownGracefully {
                        self.wakeUps.continuation.yield()
                        try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
                    }
                }
            }
        } onCancelOrGracefulShutdown: {
            self.wakeUps.continuation.finish()
        }
    }

    /// Makes `refreshed()` return false, for the callers that wait and for all later ones.
    func refuseCallers() {
        for caller in removeCallers(lastTime: true) { caller.resume(returning: false) }
    }

    /// Requests the control data for the callers that wait now.
    func refresh() async {
        let callers = removeCallers(lastTime: false)
        let isDone = await request()
        for caller in callers { caller.resume(returning: isDone) }
    }

    /// - Parameter lastTime: whether no caller may wait from now on.
    private func removeCallers(lastTime: Bool) -> [CheckedContinuation<Bool, Never>] {
        waiting.withLock { callers in
            defer { callers = lastTime || callers == nil ? nil : [] }
            return callers ?? []
        }
    }

    /// Requests the control data, and applies the reply. Returns false if there was no reply.
    private func request() async -> Bool {
        let (known, purpose) = (version, purpose)
        let askedAt = ContinuousClock.now
        do throws(BusError) {
            let reply = try await bus.request(
                .snapshot, as: Mss_Bus_V1_ControlCommands.self, timeout: .seconds(2)
            ) { correlation in
                var command = Mss_Bus_V1_ControlCommand()
                command.correlation = correlation
                command.snapshot.knownVersion = known
                if let purpose { command.snapshot.keyPurpose = purpose.bus }
                return command
            }
            guard case .snapshot(let snapshot)? = reply.body else { return false }
            if snapshot.version != known { apply(snapshot) }
            state.withLock { $0.confirmedAt = askedAt }
            return true
        } catch {
            logger.debug("control data not refreshed", metadata: ["error": "\(error)"])
            return false
        }
    }

    /// Replaces the copy with a snapshot.
    func apply(_ snapshot: Mss_Bus_V1_Snapshot) {
        var new = State(
            snapshot: ControlSnapshot(
                version: snapshot.version, instances: snapshot.instances.map { Instance(bus: $0) },
                configurations: snapshot.configurations.compactMap { SyncConfiguration(bus: $0) }))
        for instance in new.snapshot.instances {
            for key in instance.keys(for: .backend) {
                new.instanceOfBackendKey[key.id] = instance.id
                new.backendKeys.append(String(decoding: Array(key.id.utf8), as: UTF8.self))
            }
        }
        state.withLock { state in
            new.confirmedAt = state.confirmedAt
            state = new
        }
        versionGauge.record(snapshot.version)
        logger.info("control data applied", metadata: ["version": "\(snapshot.version)"])
        onLoaded()
    }
}
