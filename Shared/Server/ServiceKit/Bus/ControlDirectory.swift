import AMQP
import BusMessages
import Logging
import Metrics
import ServiceLifecycle
package import SyncModel
import Synchronization

/// This process's copy of instances and configurations, at most 2 s old (D17).
///
/// An announcement triggers a refresh at once. A request for the version every second finds lost announcements.
package final class ControlDirectory: Service, Sendable {
    private struct ConfigurationKey: Hashable {
        let instanceID: InstanceID
        let bizType: BizType
    }

    private struct State {
        var version: Int64 = 0
        /// When the request was sent whose reply last confirmed the version.
        var confirmedAt: ContinuousClock.Instant?
        var instances: [InstanceID: Instance] = [:]
        var configurations: [ConfigurationKey: SyncConfiguration] = [:]
        var filtered: [InstanceID: FilteredTypes] = [:]
        var checks: [InstanceID: InstanceChecks] = [:]
        var instanceOfBackendKey: [String: InstanceID] = [:]
        /// Copies of the ids. Comparing a string with one that shares its storage is faster, which would show in the
        /// time of a check.
        var backendKeys: [String] = []
    }

    private let state = Mutex(State())
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

    /// The version of the last applied snapshot; 0 before the first.
    package var version: Int64 { state.withLock { $0.version } }

    /// Whether a snapshot has been applied.
    package var isLoaded: Bool { version > 0 }

    /// Whether this copy was confirmed as the newest within `Limits.controlAge`.
    package var isCurrent: Bool {
        let confirmedAt = state.withLock { $0.confirmedAt }
        return confirmedAt.map { $0.duration(to: .now) <= Limits.controlAge } ?? false
    }

    /// An instance, enabled or not.
    package func instance(_ id: InstanceID) -> Instance? { state.withLock { $0.instances[id] } }

    /// Every instance, enabled or not.
    package var instanceIDs: [InstanceID] { state.withLock { Array($0.instances.keys) } }

    /// The instance that owns the live backend key with this id.
    package func instance(ofBackendKey keyID: String) -> Instance? {
        state.withLock { state in state.instanceOfBackendKey[keyID].flatMap { state.instances[$0] } }
    }

    /// The id of a random live backend key; empty when there is none.
    package var someBackendKey: String { state.withLock { $0.backendKeys.randomElement() ?? "" } }

    /// A configuration, online or not.
    package func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
        state.withLock { $0.configurations[ConfigurationKey(instanceID: instanceID, bizType: bizType)] }
    }

    /// The configurations of an instance that have filters.
    package func filtered(_ id: InstanceID) -> FilteredTypes { state.withLock { $0.filtered[id] ?? FilteredTypes() } }

    /// The parts of an instance that need a valid verdict.
    package func checks(_ id: InstanceID) -> InstanceChecks { state.withLock { $0.checks[id] ?? InstanceChecks() } }

    /// Every instance, in the order of their ids.
    package var instances: [Instance] {
        state.withLock { Array($0.instances.values) }.sorted { $0.id.text < $1.id.text }
    }

    /// Every configuration of an instance, in the order of their Sync IDs.
    package func configurations(of instanceID: InstanceID) -> [SyncConfiguration] {
        state.withLock { $0.configurations.values.filter { $0.instanceID == instanceID } }
            .sorted { $0.bizType.text < $1.bizType.text }
    }

    /// Keeps the copy current until shutdown.
    package func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await _ in self.wakeUps.stream { await self.refresh() }
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

    private func refresh() async {
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
            guard case .snapshot(let snapshot)? = reply.body else { return }
            if snapshot.version != known { apply(snapshot) }
            state.withLock { $0.confirmedAt = askedAt }
        } catch {
            logger.debug("control data not refreshed", metadata: ["error": "\(error)"])
        }
    }

    /// Replaces the copy with a snapshot.
    func apply(_ snapshot: Mss_Bus_V1_Snapshot) {
        var new = State(version: snapshot.version)
        for message in snapshot.instances {
            let instance = Instance(bus: message)
            new.instances[instance.id] = instance
            for key in instance.keys(for: .backend) {
                new.instanceOfBackendKey[key.id] = instance.id
                new.backendKeys.append(String(decoding: Array(key.id.utf8), as: UTF8.self))
            }
        }
        for message in snapshot.configurations {
            guard let configuration = SyncConfiguration(bus: message) else { continue }
            let key = ConfigurationKey(instanceID: configuration.instanceID, bizType: configuration.bizType)
            new.configurations[key] = configuration
        }
        new.filtered = Dictionary(grouping: new.configurations.values.filter(\.isFiltered), by: \.instanceID)
            .mapValues { FilteredTypes($0) }
        let checked = Dictionary(grouping: new.configurations.values.filter(\.checksSession), by: \.instanceID)
        for (id, configurations) in checked {
            new.checks[id] = new.instances[id].map { InstanceChecks($0, configurations) }
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
