import Credentials
import Logging
import Metrics
import NIOCore
import ServiceKit
import SyncModel
import Synchronization

/// The parts that all device connections of this gateway share, and the events that concern many sessions.
final class GatewayRuntime: Sendable {
    let limits: SessionLimits
    let registry = SessionRegistry()
    let admission: AdmissionController
    let reporter: Reporter
    let contexts: SessionContextSource
    /// Sends the commands of sessions.
    let commands: SessionCommandSender
    let logger: Logger
    let refusedNotices = Counter(label: "mss_gateway_notices_refused")
    private let headSweep: HeadSweep
    private let globalThrottle: Mutex<GlobalPushThrottle?> = Mutex(nil)
    private let rebalance: Mutex<Rebalance>

    var gatewayID: String { commands.gatewayID }
    var bus: MessageBus { commands.bus }
    var clock: ProcessClock { contexts.clock }

    convenience init(
        _ context: ServiceContext, limits: SessionLimits, admission: AdmissionLimits, control: ControlConnection
    ) {
        self.init(
            gatewayID: context.settings[GatewaySettings.id], limits: limits, admission: admission,
            ring: context.settings[KeyRingSetting.sealing(for: .device)], control: control, tracer: context.tracer,
            rebalancePerSecond: context.settings[GatewaySettings.rebalance], logger: context.logger)
    }

    /// - Parameters:
    ///   - ring: decrypts the keys of devices.
    ///   - rebalancePerSecond: surplus devices closed per second at most; 0: none.
    ///   - random: draws a number from 0 to below 1, for jitter.
    init(
        gatewayID: String, limits: SessionLimits, admission: AdmissionLimits, ring: SealingRing,
        control: ControlConnection, tracer: PushTracer? = nil, rebalancePerSecond: Int = 0,
        clock: ProcessClock = .system, random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        logger: Logger
    ) {
        self.limits = limits
        self.logger = logger
        let admission = AdmissionController(limits: admission, clock: clock)
        self.admission = admission
        rebalance = Mutex(Rebalance(perSecond: rebalancePerSecond))
        reporter = Reporter(bus: control.bus, clock: clock, tracer: tracer)
        contexts = SessionContextSource(
            clock: clock, databaseTime: control.bus.databaseTime, control: control.directory, ring: ring,
            random: random, admission: admission)
        commands = SessionCommandSender(gatewayID: gatewayID, bus: control.bus, contexts: contexts)
        headSweep = HeadSweep(gatewayID: gatewayID, bus: control.bus, logger: logger)
    }

    /// Makes the lease service. Every session registers again under each new lease.
    func makeLease() -> GatewayLease {
        let made = GatewayLease(
            gatewayID: gatewayID, bus: bus, clock: clock, logger: logger,
            controlVersion: { [control = contexts.control] in control.version },
            sessions: { [registry] in registry.count },
            onTaken: { [weak self] in self?.leaseTaken() },
            onRegained: { [weak self] in self.map { $0.notify($0.registry.all, .contextChanged) } },
            onFleet: { [weak self] fleet in
                self.map { runtime in runtime.rebalance.withLock { $0.update(fleet, own: runtime.registry.count) } }
            })
        contexts.lease = made
        return made
    }

    /// Makes the service that spreads immediate global pushes over time.
    func makeThrottle(
        sessionsPerSecond: Int,
        pause: @escaping @Sendable (_ until: ContinuousClock.Instant) async -> Void = GlobalPushThrottle.sleep
    ) -> GlobalPushThrottle {
        let made = GlobalPushThrottle(
            sessionsPerSecond: sessionsPerSecond, sessions: { [registry] in registry.sessions(listeningTo: $0) },
            notify: { [self] sessions, notice in
                deliver(notice, to: sessions)
                var waited = Set<ObjectIdentifier>()
                for session in sessions where waited.insert(ObjectIdentifier(session.eventLoop)).inserted {
                    try? await session.eventLoop.submit {}.get()
                }
            }, now: clock.now, pause: pause)
        globalThrottle.withLock { $0 = made }
        return made
    }

    /// The number of sessions of each known instance.
    func sessionsByInstance() -> [InstanceID: Int] { registry.counts(of: contexts.control.snapshot.instanceIDs) }

    /// Whether the control data is loaded.
    var isLoaded: Bool { contexts.control.isLoaded }

    // MARK: Events for many sessions

    /// Passes an event to sessions, in one turn of each event loop.
    func notify(_ sessions: [SessionHandle], _ event: SessionEvent) {
        EventLoopBatch.execute(sessions, on: \.eventLoop) { sessions in
            // Each session makes its own context: a verdict or the lease may end meanwhile.
            for session in sessions { session.handler.value.handle(event) }
        }
    }

    /// Lets each session look at its deadlines. Called once per second. It must cost next to nothing for a session
    /// whose deadline is not reached, because a gateway has many.
    func tick() {
        EventLoopBatch.execute(registry.all, on: \.eventLoop) { sessions in
            for session in sessions { session.handler.value.tick() }
        }
    }

    /// Called for a new lease. The global caches may contain data that a failover lost, so they are emptied.
    private func leaseTaken() {
        commands.globalChannels.forgetAll()
        registerAll()
    }

    /// Makes every session register and read the heads of its channels again. Called after a new lease or a reconnect
    /// to the broker, because notices may have been lost.
    func registerAll() {
        notify(registry.all, .registrationDue)
    }

    /// Closes some surplus devices, once per second. They reconnect to other gateways.
    func closeSurplus() {
        let count = registry.count
        let surplus = rebalance.withLock { $0.next(own: count) }
        guard surplus > 0 else { return }
        // Busy sessions refuse, so a few more are asked.
        notify(registry.some(surplus * 5 / 4), .surplus)
    }

    /// Called when control data changed. Withheld data may be allowed now.
    func contextChanged() {
        commands.globalChannels.forgetAll()
        contexts.forgetKeys()
        notify(registry.all, .contextChanged)
        contexts.lease?.controlDataChanged()
    }

    /// Removes the oplogs that a global notice recalls from the caches.
    func recalled(_ notice: ChannelNotice) {
        commands.globalChannels.recalled(Set(notice.entries.compactMap(\.recalls)), channelID: notice.channelID)
    }

    /// Passes an immediate global push to the throttle.
    func throttle(_ notice: ChannelNotice) { globalThrottle.withLock { $0 }?.add(notice) }

    /// Processes the heads of channels that changed since the last sweep as notices.
    func sweep() async {
        guard registry.count > 0, let lease = contexts.lease?.taken else { return }
        for notice in await headSweep.notices(under: lease) { received(notice) }
    }
}
