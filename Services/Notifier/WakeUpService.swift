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

/// Claims devices twice a second that are not connected and have unacknowledged data, and wakes them through their push
/// providers, on a thread and a database connection of its own.
///
/// A failure loses no data: a device that is not woken receives everything when it connects by itself.
actor WakeUpService: Service {
    private static let claimInterval = Duration.milliseconds(500)
    private static let limit = Duration.seconds(5)
    /// The time without an acknowledgement after which a connected device counts as asleep.
    private static let ackTimeout = Duration.seconds(20)
    /// Data that is older, because no notifier ran, wakes no device.
    private static let reach = Duration.seconds(600)
    /// The largest number of wake-ups in flight.
    private static let wakingMax = 500
    /// The number of attempts while a provider cannot accept a wake-up, and the longest pause between two of them.
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
    /// The last failure of each app that was logged; each is logged once.
    private var failures: [String: String] = [:]
    private let metrics = WakeUpMetrics()

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameter interval: the pause before a woken device that did not connect is woken again.
    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, providers: PushProviders, interval: Duration,
        health: HealthState, reporter: ProcessReporter?, logger: Logger
    ) {
        connection = SyncDatabase.connection(postgres, logger: logger)
        bus = MessageBus(configuration: amqp, consumptions: [], answers: [], reporter: reporter, logger: logger)
        self.providers = providers
        self.interval = interval
        self.health = health
        self.logger = logger
        health.set("postgres", isReady: false)
    }

    /// On shutdown, the service first stops claiming. Then the wake-ups in flight end.
    func run() async throws {
        let bus = bus
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bus.run() }
            group.addTask { await self.claimRegularly() }
            try await group.waitForAll()
        }
        await providers.shutdown()
        connection.close()
        thread.stop()
    }

    private func claimRegularly() async {
        await withDiscardingTaskGroup { group in
            while !Task.isShuttingDownGracefully, !Task.isCancelled {
                for sleeper in claim() {
                    waking += 1
                    group.addTask { await self.wake(sleeper) }
                }
                try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.claimInterval) }
            }
        }
        record()
    }

    /// Records the outcomes of the last wake-ups, and claims further devices.
    private func claim() -> [PushTokenStore.SleepingDevice] {
        record()
        guard waking < Self.wakingMax else { return [] }
        do throws(PostgresError) {
            let sleepers = try connection.run(
                PushTokenStore.claim(
                    ackTimeout: Self.ackTimeout, interval: interval, reach: Self.reach, limit: Self.wakingMax - waking),
                within: Self.limit)
            health.set("postgres", isReady: true)
            return sleepers
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
            return []
        }
    }

    /// Records outcomes. Outcomes that the database does not accept now stay for the next turn.
    private func record() {
        do throws(PostgresError) {
            if !taken.isEmpty {
                try connection.run(PushTokenStore.recordWoken(taken), within: Self.limit)
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

    private func wake(_ sleeper: PushTokenStore.SleepingDevice) async {
        defer { waking -= 1 }
        let app = "\(sleeper.instanceID.text) \(sleeper.token.provider)"
        guard let provider = providers[sleeper.instanceID, sleeper.token.provider] else {
            metrics.refused.increment()
            return report(failure: "\(NotifierSettings.appsFile.name) does not name this app", of: app)
        }
        var pause = Duration.seconds(1)
        for attempt in 1...Self.attempts {
            switch await provider.wake(sleeper.token.text) {
            case .taken:
                metrics.woken.increment()
                taken.append(sleeper.token)
                return report(failure: "", of: app)
            case .gone:
                metrics.gone.increment()
                gone.append(sleeper.token)
                return
            case .refused(let reason):
                metrics.refused.increment()
                return report(failure: reason, of: app)
            case .later(let named):
                guard attempt < Self.attempts else { break }
                let wait = min(Self.longestWait, max(named ?? .zero, pause * Double.random(in: 0.5...1)))
                try? await cancelWhenGracefulShutdown { try await Task.sleep(for: wait) }
                if Task.isShuttingDownGracefully { return }
                pause *= 2
            }
        }
        metrics.refused.increment()
        report(failure: "the push provider is not available", of: app)
    }

    /// Logs a failure of an app when it differs from the last one.
    ///
    /// - Parameter failure: empty: the wake-up succeeded.
    private func report(failure: String, of app: String) {
        guard failures[app, default: ""] != failure else { return }
        failures[app] = failure
        failure.isEmpty
            ? logger.info("devices are woken again", metadata: ["app": "\(app)"])
            : logger.warning("devices are not woken", metadata: ["app": "\(app)", "reason": "\(failure)"])
    }
}

/// Counts wake-ups by outcome.
private struct WakeUpMetrics {
    let woken = Counter(label: "mss_notifier_devices_woken")
    let gone = Counter(label: "mss_notifier_tokens_gone")
    let refused = Counter(label: "mss_notifier_wake_ups_refused")
}
