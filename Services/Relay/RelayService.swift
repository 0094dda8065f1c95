import AMQP
import BackendCalls
import BusMessages
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncModel
import SyncStore
import TenantCalls

/// Takes operations, has them done and tells of them.
struct RelayService: Service {
    /// Bodies in hand: what a lane works on and what waits ready.
    private static let prefetch: UInt16 = 64
    /// How long what is under way may take when the process is asked to end.
    private static let drainLimit = Duration.seconds(8)

    /// Kept current beside this service.
    let directory: ControlDirectory
    private let bus: MessageBus
    private let submitted = WorkQueue<AMQPDelivery>()
    private let asked = WorkQueue<AMQPDelivery>()
    private let events = WorkQueue<OperationRunner.Event>()
    private let submitLane: SubmitLane
    private let peopleLane: PeopleLane
    private let runner: OperationRunner

    /// As the settings have it.
    ///
    /// - Throws: the file of tenants' authorities cannot be read.
    init(_ context: ServiceContext) throws {
        let (settings, logger) = (context.settings, context.logger)
        let ring = settings[KeyRingSetting.sealing(for: .callout)]
        let keys = OpenedKeys(ring: ring)
        let consumptions = [(CommandQueue.submit, submitted), (.relay, asked)].map { queue, work in
            AMQPConsumption(queue: queue.rawValue, prefetch: Self.prefetch) { work.add(contentsOf: $0) }
        }
        let control = ControlConnection(context, keysFor: .callout, consumptions: consumptions) { [events] in
            keys.forgetAll()
            events.add(.look)
        }
        let directory = control.directory
        (bus, self.directory) = (control.bus, directory)
        let postgres = PostgresConfiguration(settings, applicationName: context.name)
        submitLane = SubmitLane(
            configuration: postgres, queue: submitted, bus: control.bus,
            intake: SubmitIntake(
                ring: ring, instance: { directory.instance($0) }, asksForLogs: { directory.asksForLogs($0) }),
            isLoaded: { directory.isLoaded },
            taken: { [events] instances, hasKnown in
                events.add(.due(instances))
                if hasKnown { events.add(.repeated) }
            }, logger: logger)
        peopleLane = PeopleLane(
            configuration: postgres, queue: asked, bus: control.bus, retried: { [events] in events.add(.due([$0])) },
            logger: logger)
        let timeout = settings[RelaySettings.timeout]
        let caller = try TenantCaller(
            limit: timeout, bodyMax: CallOutcome.bytesMax, policy: RelaySettings.callouts.policy(settings),
            authorityFile: RelaySettings.callouts.authorityFile(settings))
        runner = OperationRunner(
            configuration: postgres, events: events,
            call: TenantCall(caller: caller, keys: keys, ring: ring, instance: { directory.instance($0) }),
            teller: Teller(
                pushes: BusSubmission(bus: control.bus), configuration: { directory.configuration($0, $1) },
                logger: logger),
            rule: RetryRule(
                firstPause: settings[RelaySettings.firstPause], attempts: settings[RelaySettings.attempts],
                age: settings[RelaySettings.age]),
            timeout: timeout, concurrency: settings[RelaySettings.tenantConcurrency],
            // Also those that were switched off since, whose operations come to their end by the rule.
            instances: { directory.instances.map(\.id) }, health: context.health, logger: logger)
    }

    /// On shutdown consuming ends first, then what is in hand is answered, and calls that are under way may end.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await submitLane.run() }
            group.addTask { await peopleLane.run() }
            group.addTask { await runner.run() }
            group.addTask {
                defer {
                    submitted.finish()
                    asked.finish()
                }
                try await bus.run()
            }
            group.addTask { await keepTime() }
            try await group.waitForAll()
        }
    }

    /// Has the runner look every second; ends its events once nothing is under way any more.
    private func keepTime() async {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            events.add(.look)
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }
        }
        let deadline = ContinuousClock.now + Self.drainLimit
        while await !runner.isIdle, .now < deadline { try? await Task.sleep(for: .milliseconds(20)) }
        events.finish()
    }
}

extension ControlDirectory {
    /// Whether operators of an instance ask devices for their logs.
    func asksForLogs(_ id: InstanceID) -> Bool { configuration(id, ReservedSyncID.diagnosis) != nil }
}
