import BackendCalls
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import StoreService
import SyncModel
import SyncStore
import TenantCalls

/// Runs the parts of the relay: the intake of operations, the calls of tenants, and the commands of operators.
struct RelayService: Service {
    /// The longest wait at shutdown for calls and pushes that are in flight.
    private static let drainLimit = Duration.seconds(8)

    /// The control data. `Main` runs it as a service of its own.
    let directory: ControlDirectory
    private let bus: MessageBus
    private let submitted = WorkQueues<SubmitHandler>()
    private let operatorCommands = WorkQueues<OperatorCommandHandler>()
    private let events = WorkQueue<OperationRunner.Event>()
    private let submitWorker: StoreWorker<SubmitHandler>
    private let operatorWorker: StoreWorker<OperatorCommandHandler>
    private let runner: OperationRunner

    /// - Throws: when the file of the tenants' certificate authorities cannot be read.
    init(_ context: ServiceContext) throws {
        let (settings, logger) = (context.settings, context.logger)
        let ring = settings[KeyRingSetting.sealing(for: .callout)]
        let keys = OpenedKeys(ring: ring)
        let consumptions = [submitted.consumption, operatorCommands.consumption]
        let control = ControlConnection(context, keysFor: .callout, consumptions: consumptions) { [events] in
            keys.forgetAll()
            events.add(.tick)
        }
        let directory = control.directory
        (bus, self.directory) = (control.bus, directory)
        let postgres = PostgresConfiguration(settings, applicationName: context.name)
        submitWorker = StoreWorker(
            name: "submit", configuration: postgres, queue: submitted.queues[0],
            handler: SubmitHandler(
                bus: control.bus,
                intake: SubmitIntake(
                    ring: ring, instance: { directory.instance($0) }, asksForLogs: { directory.asksForLogs($0) }),
                isLoaded: { directory.isLoaded },
                onStored: { [events] instances, hasRepeats in
                    events.add(.due(instances))
                    if hasRepeats { events.add(.repeated) }
                }, logger: logger), logger: logger)
        operatorWorker = StoreWorker(
            name: "operators", configuration: postgres, queue: operatorCommands.queues[0],
            handler: OperatorCommandHandler(bus: control.bus, retried: { [events] in events.add(.due([$0])) }),
            logger: logger)
        let timeout = settings[RelaySettings.timeout]
        let caller = try TenantCaller(
            limit: timeout, bodyMax: CallOutcome.bytesMax, policy: RelaySettings.callouts.policy(settings),
            authorityFile: RelaySettings.callouts.authorityFile(settings))
        runner = OperationRunner(
            configuration: postgres, events: events,
            call: TenantCall(caller: caller, keys: keys, ring: ring, instance: { directory.instance($0) }),
            pusher: ResultPusher(
                pushes: BusSubmission(bus: control.bus), configuration: { directory.configuration($0, $1) },
                logger: logger),
            rule: RetryRule(
                firstPause: settings[RelaySettings.firstPause], attempts: settings[RelaySettings.attempts],
                age: settings[RelaySettings.age]),
            timeout: timeout, concurrency: settings[RelaySettings.tenantConcurrency],
            // This includes disabled instances: their operations end by the retry rule.
            instances: { directory.instances.map(\.id) }, health: context.health, logger: logger)
    }

    /// On shutdown, the process first stops consuming. Then it answers the commands that it has received, and waits for
    /// calls in flight.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await submitWorker.run() }
            group.addTask { await operatorWorker.run() }
            group.addTask { await runner.run() }
            group.addTask {
                defer {
                    submitted.finish()
                    operatorCommands.finish()
                }
                try await bus.run()
            }
            group.addTask { await runClock() }
            try await group.waitForAll()
        }
    }

    /// Sends the runner a tick every second. At shutdown it finishes the events when the runner is idle, or after
    /// `drainLimit`.
    private func runClock() async {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            events.add(.tick)
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
        }
        let deadline = ContinuousClock.now + Self.drainLimit
        while await !runner.isIdle, .now < deadline { try? await Task.sleep(for: .milliseconds(20)) }
        events.finish()
    }
}

extension ControlDirectory {
    /// Whether operators of an instance can request logs of devices.
    func asksForLogs(_ id: InstanceID) -> Bool { configuration(id, ReservedSyncID.diagnosis) != nil }
}
