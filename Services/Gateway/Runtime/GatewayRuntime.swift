import AMQP
import BusMessages
import Credentials
import DeviceProtocol
import Foundation
import Logging
import Metrics
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization

/// The state that all device connections of this gateway share: the bus, the registry, the lease and the reporter.
final class GatewayRuntime: Sendable {
    let gatewayID: String
    let limits: SessionLimits
    let registry = SessionRegistry()
    let admission: AdmissionController
    let reporter: Reporter
    let logger: Logger
    let bus: MessageBus
    let clock: ProcessClock
    let databaseTime: SharedDatabaseClock
    let random: @Sendable () -> Double
    private let directory: ControlDirectory
    private let keys: OpenedKeys
    private let globalChannels: GlobalChannelCaches
    /// The number of registrations sent.
    private let registrations = Atomic<UInt64>(0)
    let refusedNotices = Counter(label: "mss_gateway_notices_refused")
    private let lease: Mutex<GatewayLease?> = Mutex(nil)
    private let globalThrottle: Mutex<GlobalPushThrottle?> = Mutex(nil)
    /// The snapshot of the last sweep, and the epoch of the lease that it was made under.
    private let swept = Mutex<(epoch: Int64, upto: String)>((0, ""))
    private let rebalance: Mutex<Rebalance>
    /// The session context without the parts that change with time.
    private let baseContext: SessionContext

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
        self.gatewayID = gatewayID
        self.limits = limits
        self.admission = AdmissionController(limits: admission, clock: clock)
        self.logger = logger
        self.clock = clock
        let databaseTime = control.bus.databaseTime
        self.databaseTime = databaseTime
        self.random = random
        rebalance = Mutex(Rebalance(perSecond: rebalancePerSecond))
        bus = control.bus
        directory = control.directory
        keys = OpenedKeys(ring: ring)
        reporter = Reporter(bus: control.bus, clock: clock, tracer: tracer)
        baseContext = SessionContext(
            now: clock.now(), databaseTime: databaseTime.now, machineTime: clock.wallTime(), holdsLease: false,
            configuration: { [directory] in directory.configuration($0, $1) },
            instance: { [directory] in directory.instance($0) }, openKey: { [keys] in keys.secret(of: $0, $1) },
            random: random, filtered: { [directory] in directory.filtered($0) },
            checks: { [directory] in directory.checks($0) },
            chargeConnect: { [admission = self.admission] in admission.chargeConnect($0, at: $1) },
            chargeBind: { [admission = self.admission] in admission.chargeBind($0, of: $1, at: $2) })
        globalChannels = GlobalChannelCaches(time: databaseTime.current) { [bus] channelID, after, newest, answer in
            bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
                .with {
                    $0.correlation = number
                    $0.page.channelID = channelID
                    $0.page.after = after.value
                    $0.page.limit = UInt32(Limits.fetchPageOplogs)
                    $0.page.newest = UInt32(newest)
                    $0.page.anyDevice = true
                }
            } completion: { result in
                if case .success(let reply) = result, case .fetch(let page)? = reply.body {
                    answer(page)
                } else {
                    answer(nil)
                }
            }
        }
    }

    /// Makes the lease service. Every session registers again under each new lease.
    func makeLease() -> GatewayLease {
        let made = GatewayLease(
            gatewayID: gatewayID, bus: bus, clock: clock, logger: logger,
            controlVersion: { [directory] in directory.version }, sessions: { [registry] in registry.count },
            onTaken: { [weak self] in self?.leaseTaken() },
            onFleet: { [weak self] fleet in
                self.map { runtime in runtime.rebalance.withLock { $0.update(fleet, own: runtime.registry.count) } }
            })
        lease.withLock { $0 = made }
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
    func sessionsByInstance() -> [InstanceID: Int] { registry.counts(of: directory.instanceIDs) }

    /// Whether the control data is loaded.
    var isLoaded: Bool { directory.isLoaded }

    private var currentLease: GatewayLease? { lease.withLock { $0 } }

    /// The session context of this moment.
    func sessionContext() -> SessionContext {
        var sessionContext = baseContext
        sessionContext.now = clock.now()
        (sessionContext.databaseTime, sessionContext.machineTime) = (databaseTime.now, clock.wallTime())
        if let standing = currentLease?.standing(at: sessionContext.now) {
            (sessionContext.leaseEpoch, sessionContext.holdsLease) = standing
        }
        return sessionContext
    }

    // MARK: Events for many sessions

    /// Passes an event to sessions, in one turn of each event loop.
    func notify(_ sessions: [SessionHandle], _ event: SessionEvent) {
        EventLoopBatch.execute(sessions, on: \.eventLoop) { sessions in
            // Each session makes its own context: a verdict or the lease may end meanwhile.
            for session in sessions { session.handler.value.handle(event) }
        }
    }

    /// Called for a new lease. The global caches may contain data that a failover lost, so they are emptied.
    private func leaseTaken() {
        globalChannels.forgetAll()
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
        globalChannels.forgetAll()
        keys.forgetAll()
        notify(registry.all, .contextChanged)
        currentLease?.controlDataChanged()
    }

    /// Removes the oplogs that a global notice recalls from the caches.
    func recalled(_ notice: ChannelNotice) {
        globalChannels.recalled(Set(notice.entries.compactMap(\.recalls)), channelID: notice.channelID)
    }

    /// Passes an immediate global push to the throttle.
    func throttle(_ notice: ChannelNotice) { globalThrottle.withLock { $0 }?.add(notice) }

    /// Asks the store for channels with new oplogs since the last sweep, and processes the reply as notices. So the
    /// data of a lost notice is found. The first sweep under a lease begins at the lease's snapshot, because every
    /// session registers after it.
    func sweep() async {
        guard registry.count > 0, bus.isConnected, let (epoch, snapshot) = currentLease?.taken else { return }
        let since = swept.withLock { $0.epoch == epoch ? $0.upto : snapshot }
        do throws(BusError) {
            let reply = try await bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { [gatewayID] number in
                .with {
                    $0.correlation = number
                    $0.sweep.gatewayID = gatewayID
                    $0.sweep.since = since
                }
            }
            swept.withLock { $0 = (epoch, reply.sweep.upto) }
            for state in reply.sweep.channels {
                guard let target = TargetAddress(bus: state.target) else { continue }
                let address = ChannelAddress(target: target, bizType: BizType(state.bizType))
                received(ChannelNotice(channelID: state.channelID, address: address, head: OplogID(state.head)))
            }
        } catch {
            logger.debug("sweep failed", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Requests of one session

    func open(
        _ identity: SessionIdentity, connectionEpoch: Int64, opensBind: Bool, claim: Ownership.Claim?,
        verdictFor: Duration, for session: SessionHandle
    ) {
        let gatewayEpoch = currentLease?.epoch ?? 0
        let registration = registrations.wrappingAdd(1, ordering: .relaxed).newValue
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.open.gatewayID = gatewayID
                $0.open.gatewayEpoch = gatewayEpoch
                $0.open.instanceID = identity.instanceID.text
                $0.open.deviceID = identity.deviceID.text
                $0.open.storeID = identity.storeID.text
                $0.open.userID = identity.userID?.text ?? ""
                $0.open.operatingSystem = Mss_Bus_V1_OperatingSystem(identity.traits.operatingSystem)
                $0.open.appVersion = identity.traits.appVersion
                $0.open.foreground = identity.isForeground
                $0.open.connectionNumber = session.number
                $0.open.deviceConnectionNumber = identity.connect.connectionNumber
                $0.open.registrationNumber = registration
                $0.open.connectionEpoch = connectionEpoch
                $0.open.opensBind = opensBind
                switch claim {
                case .requested?, .latestConnection?: $0.open.takesOwnership = true
                case .given(let epoch)?: $0.open.ownershipEpoch = epoch
                case nil: break
                }
                $0.open.verdictValidMs = verdictFor.wholeMilliseconds
                $0.open.suspended = identity.subscriptions.suspended.map(\.text).sorted()
                if identity.userID != nil { $0.open.sessionDigest = Data(identity.sessionDigest) }
                $0.open.deviceSecretDigest = Data(identity.connect.secretDigest)
                $0.open.bindsDevice = directory.instance(identity.instanceID)?.bindsDevices ?? false
                if let token = identity.connect.pushToken { $0.open.pushToken = token.bus }
                $0.open.filtered = identity.subscriptions.filtered.map(\.text)
                if !identity.subscriptions.filtered.isEmpty {
                    $0.open.parameters = identity.subscriptions.parameters.map(\.bus)
                }
            }
        } completion: { result in
            session.eventLoop.execute {
                guard case .success(let reply) = result, case .session(let registered)? = reply.body else {
                    return session.handler.value.handle(.registered(nil, bindNumber: identity.bindNumber))
                }
                session.handler.value.registered(identity, registered)
            }
        }
    }

    /// Updates a session in the store. Without a reply the session registers again: the store would answer NOT_ONLINE
    /// for an eligible device.
    func update(
        _ identity: SessionIdentity, connectionEpoch: Int64, verdictFor: Duration, for session: SessionHandle
    ) {
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.update.instanceID = identity.instanceID.text
                $0.update.deviceID = identity.deviceID.text
                $0.update.connectionEpoch = connectionEpoch
                $0.update.foreground = identity.isForeground
                $0.update.verdictValidMs = verdictFor.wholeMilliseconds
            }
        } completion: { [self] result in
            if case .failure = result { notify([session], .registrationDue) }
        }
    }

    /// Removes a session from the store. A lost command is harmless: the next registration of the device replaces the
    /// session.
    func close(_ identity: SessionIdentity, connectionEpoch: Int64) {
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.close.instanceID = identity.instanceID.text
                $0.close.deviceID = identity.deviceID.text
                $0.close.connectionEpoch = connectionEpoch
            }
        } completion: { _ in
        }
    }

    /// Reads a page. A page of a global channel comes from the cache if possible.
    func fetch(_ request: PageRequest, for session: SessionHandle) {
        // A threshold with filters is particular to the session.
        guard request.isGlobal, request.filters == nil else { return read(request, for: session) }
        globalChannels.page(for: request) { [self] page in
            guard let page else { return read(request, for: session) }
            notify([session], .fetched(page, channelID: request.channelID, bindNumber: request.bindNumber))
        }
    }

    private func read(_ request: PageRequest, for session: SessionHandle) {
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with {
                $0.correlation = number
                $0.page.channelID = request.channelID
                $0.page.after = request.after.value
                $0.page.limit = UInt32(Limits.fetchPageOplogs)
                $0.page.newest = UInt32(request.newest)
                $0.page.newestUpto = request.newestUpto.value
                $0.page.operatingSystem = Mss_Bus_V1_OperatingSystem(request.traits.operatingSystem)
                $0.page.appVersion = request.traits.appVersion
                $0.page.slot = UInt32(request.traits.slot.number)
                $0.page.ownerDeviceID = request.onlyOwner?.text ?? ""
                $0.page.filters = request.filters?.bus ?? []
            }
        } completion: { [self] result in
            var page: Mss_Bus_V1_FetchReply?
            if case .success(let reply) = result, case .fetch(let fetched)? = reply.body { page = fetched }
            notify([session], .fetched(page, channelID: request.channelID, bindNumber: request.bindNumber))
        }
    }

    /// Reads a page of history. Without a reply the device is asked to repeat the request.
    func readHistory(_ read: HistoryRead, for session: SessionHandle) {
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with {
                $0.correlation = number
                $0.history.channelID = read.channelID
                $0.history.after = read.after.value
                $0.history.before = read.before.value
                $0.history.count = UInt32(read.count)
                $0.history.oldestFirst = read.isOldestFirst
                $0.history.operatingSystem = Mss_Bus_V1_OperatingSystem(read.traits.operatingSystem)
                $0.history.appVersion = read.traits.appVersion
                $0.history.slot = UInt32(read.traits.slot.number)
                $0.history.ownerDeviceID = read.onlyOwner?.text ?? ""
                $0.history.filter = read.filter.text
            }
        } completion: { [self] result in
            var page: Mss_Bus_V1_HistoryReply?
            if case .success(let reply) = result, case .history(let history)? = reply.body { page = history }
            notify([session], .historyRead(page, of: read.id))
        }
    }

    /// Reads the summary of channels. Without a reply the device is asked to repeat the request.
    func readSummary(_ read: SummaryRead, for session: SessionHandle) {
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with {
                $0.correlation = number
                $0.summary.operatingSystem = Mss_Bus_V1_OperatingSystem(read.traits.operatingSystem)
                $0.summary.appVersion = read.traits.appVersion
                $0.summary.slot = UInt32(read.traits.slot.number)
                $0.summary.channels = read.channels.map { channel in
                    .with {
                        $0.channelID = channel.channelID
                        $0.deviceID = channel.receiver.storeID == nil ? "" : channel.receiver.deviceID.text
                        $0.storeID = channel.receiver.storeID?.text ?? ""
                        $0.userID = channel.receiver.userID?.text ?? ""
                        $0.stored = channel.stored.value
                        $0.ownerDeviceID = channel.onlyOwner?.text ?? ""
                        $0.filter = channel.filter.text
                    }
                }
            }
        } completion: { [self] result in
            var page: Mss_Bus_V1_SummaryReply?
            if case .success(let reply) = result, case .summary(let summary)? = reply.body { page = summary }
            notify([session], .summaryRead(page, of: read.id))
        }
    }

    /// Stores the count of a resend before the resend is sent. If this fails, the session requests it again (R7).
    func recordResend(
        channelID: Int64, _ receiver: SyncReceiver, oplogID: OplogID, repeats: Int, for session: SessionHandle
    ) {
        bus.request(.ack, as: Mss_Bus_V1_AckCommands.self) { number in
            .with {
                $0.correlation = number
                $0.channelID = channelID
                $0.deviceID = receiver.deviceID.text
                $0.storeID = receiver.storeID?.text ?? ""
                $0.userID = receiver.userID?.text ?? ""
                $0.resentID = oplogID.value
                $0.repeats = UInt32(repeats)
            }
        } completion: { [self] result in
            guard case .success = result else { return }
            notify([session], .resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats))
        }
    }
}
