import AMQP
import BusMessages
import ConnectionThread
import Logging
import Metrics
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncModel
import SyncStore

/// Looks twice a second for devices that something was stored for and that are not connected, and has them woken, on a
/// thread with its own database connection.
///
/// What it does not do costs nobody data: a device that is not woken gets everything when it connects by itself.
actor WakeUpService: Service {
    private static let lookInterval = Duration.milliseconds(500)
    private static let limit = Duration.seconds(5)
    /// How long a connected device may leave something unacknowledged before it counts as asleep.
    private static let patience = Duration.seconds(20)
    /// What waited longer, while no notifier was there, wakes nobody.
    private static let reach = Duration.seconds(600)
    /// Wake-ups under way.
    private static let wakingMax = 500
    /// Attempts at a provider that cannot take a wake-up now, and the longest wait between two.
    private static let attempts = 5
    private static let longestWait = Duration.seconds(60)

    private let thread = ConnectionThread(name: "wake-up")
    private let connection: PostgresConnection
    private let bus: MessageBus
    private let providers: PushProviders
    private let interval: Duration
    private let health: HealthState
    private let logger: Logger
    private var waking = 0
    private var taken: [PushToken] = []
    private var gone: [PushToken] = []
    /// What was said of each app's troubles, so that it is said once.
    private var troubles: [String: String] = [:]
    private let wokenCount = Counter(label: "mss_notifier_devices_woken")
    private let goneCount = Counter(label: "mss_notifier_tokens_gone")
    private let refusedCount = Counter(label: "mss_notifier_wake_ups_refused")

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameter interval: how long a device that was woken and did not come is left alone.
    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, providers: PushProviders, interval: Duration,
        health: HealthState, reporter: ProcessReporter?, logger: Logger
    ) {
        connection = SyncDatabase.connection(postgres, logger: logger)
        bus = MessageBus(configuration: amqp, consumptions: [], reporter: reporter, logger: logger)
        self.providers = providers
        self.interval = interval
        self.health = health
        self.logger = logger
        health.set("postgres", isReady: false)
    }

    /// On shutdown looking ends first, then what is under way is finished.
    func run() async throws {
        let bus = bus
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bus.run() }
            group.addTask { await self.look() }
            try await group.waitForAll()
        }
        await providers.shutdown()
        connection.close()
        thread.stop()
    }

    private func look() async {
        await withDiscardingTaskGroup { group in
            while !Task.isShuttingDownGracefully, !Task.isCancelled {
                for sleeper in claim() {
                    waking += 1
                    group.addTask { await self.wake(sleeper) }
                }
                try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.lookInterval) }
            }
        }
        record()
    }

    /// Records what has become of the last ones, and claims others.
    private func claim() -> [PushTokenStore.Sleeper] {
        record()
        guard waking < Self.wakingMax else { return [] }
        do throws(PostgresError) {
            let sleepers = try connection.run(
                PushTokenStore.claim(
                    patience: Self.patience, interval: interval, reach: Self.reach, limit: Self.wakingMax - waking),
                within: Self.limit)
            health.set("postgres", isReady: true)
            return sleepers
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
            return []
        }
    }

    /// What the database does not take now is kept for the next turn.
    private func record() {
        do throws(PostgresError) {
            if !taken.isEmpty {
                try connection.run(PushTokenStore.noteWoken(taken), within: Self.limit)
                taken = []
            }
            if !gone.isEmpty {
                try connection.run(PushTokenStore.forget(gone), within: Self.limit)
                gone = []
            }
        } catch {
            logger.warning("wake-ups are not recorded yet", metadata: ["error": "\(error.message)"])
        }
    }

    private func wake(_ sleeper: PushTokenStore.Sleeper) async {
        defer { waking -= 1 }
        let app = "\(sleeper.instanceID.text) \(sleeper.token.provider)"
        guard let provider = providers[sleeper.instanceID, sleeper.token.provider] else {
            refusedCount.increment()
            return note("no such app is named in \(NotifierSettings.appsFile.name)", of: app)
        }
        var pause = Duration.seconds(1)
        for attempt in 1...Self.attempts {
            switch await provider.wake(sleeper.token.text) {
            case .taken:
                wokenCount.increment()
                taken.append(sleeper.token)
                return note("", of: app)
            case .gone:
                goneCount.increment()
                gone.append(sleeper.token)
                return
            case .refused(let reason):
                refusedCount.increment()
                return note(reason, of: app)
            case .later(let named):
                guard attempt < Self.attempts else { break }
                let wait = min(Self.longestWait, max(named ?? .zero, pause * Double.random(in: 0.5...1)))
                try? await cancelWhenGracefulShutdown { try await Task.sleep(for: wait) }
                if Task.isShuttingDownGracefully { return }
                pause *= 2
            }
        }
        refusedCount.increment()
        note("the provider takes nothing now", of: app)
    }

    /// - Parameter trouble: empty: there is none any more.
    private func note(_ trouble: String, of app: String) {
        guard troubles[app, default: ""] != trouble else { return }
        troubles[app] = trouble
        trouble.isEmpty
            ? logger.info("devices are woken again", metadata: ["app": "\(app)"])
            : logger.warning("devices are not woken", metadata: ["app": "\(app)", "reason": "\(trouble)"])
    }
}
