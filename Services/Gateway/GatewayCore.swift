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

/// What all device connections of this gateway share: the bus with its requests, the registry, the lease, reports.
final class GatewayCore: Sendable {
    let gatewayID: String
    let limits: SessionLimits
    let registry = SessionRegistry()
    let admission: AdmissionDesk
    let reporter: Reporter
    let logger: Logger
    let bus: MessageBus
    let clock: ProcessClock
    let databaseTime: SharedDatabaseClock
    private let random: @Sendable () -> Double
    private let directory: ControlDirectory
    private let keys: OpenedKeys
    private let tails: GlobalTails
    /// Registrations asked for so far.
    private let registrations = Atomic<UInt64>(0)
    let refusedNotices = Counter(label: "mss_gateway_notices_refused")
    private let lease: Mutex<GatewayLease?> = Mutex(nil)
    private let pacer: Mutex<GlobalPacer?> = Mutex(nil)
    /// The snapshot that the last sweep looked at, and the epoch of the lease under which it was asked for.
    private let swept = Mutex<(epoch: Int64, upto: String)>((0, ""))
    private let rebalance: Mutex<Rebalance>
    /// The surroundings of any moment, without what changes from moment to moment.
    private let unchanging: SessionSurroundings

    convenience init(
        _ context: ServiceContext, limits: SessionLimits, admission: AdmissionLimits, control: ControlConnection
    ) {
        self.init(
            gatewayID: context.settings[GatewaySettings.id], limits: limits, admission: admission,
            ring: context.settings[KeyRingSetting.sealing(for: .device)], control: control, tracer: context.tracer,
            rebalancePerSecond: context.settings[GatewaySettings.rebalance], logger: context.logger)
    }

    /// - Parameters:
    ///   - ring: opens the keys of devices.
    ///   - rebalancePerSecond: devices given away in a second at the most; 0: none.
    ///   - random: draws a number from 0 to below 1, for jitter.
    init(
        gatewayID: String, limits: SessionLimits, admission: AdmissionLimits, ring: SealingRing,
        control: ControlConnection, tracer: PushTracer? = nil, rebalancePerSecond: Int = 0,
        clock: ProcessClock = .system, random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        logger: Logger
    ) {
        self.gatewayID = gatewayID
        self.limits = limits
        self.admission = AdmissionDesk(limits: admission, clock: clock)
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
        unchanging = SessionSurroundings(
            now: clock.now(), databaseTime: databaseTime.now, machineTime: clock.wallTime(), holdsLease: false,
            configuration: { [directory] in directory.configuration($0, $1) },
            instance: { [directory] in directory.instance($0) }, openKey: { [keys] in keys.secret(of: $0, $1) },
            random: random, filtered: { [directory] in directory.filtered($0) },
            checks: { [directory] in directory.checks($0) },
            connects: { [desk = self.admission] in desk.connects($0, at: $1) },
            binds: { [desk = self.admission] in desk.binds($0, of: $1, at: $2) })
        tails = GlobalTails(time: databaseTime.current) { [bus] channelID, after, newest, answer in
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

    /// The lease service of this gateway; a new lease makes every session announce itself.
    func makeLease() -> GatewayLease {
        let made = GatewayLease(
            gatewayID: gatewayID, bus: bus, clock: clock, logger: logger,
            controlVersion: { [directory] in directory.version }, sessions: { [registry] in registry.count },
            onTaken: { [weak self] in self?.leaseTaken() },
            onFleet: { [weak self] fleet in
                self.map { core in core.rebalance.withLock { $0.learned(fleet, own: core.registry.count) } }
            })
        lease.withLock { $0 = made }
        return made
    }

    /// The service that spreads immediate global pushes over time.
    func makePacer(
        sessionsPerSecond: Int,
        pause: @escaping @Sendable (_ until: ContinuousClock.Instant) async -> Void = GlobalPacer.sleep
    ) -> GlobalPacer {
        let made = GlobalPacer(
            sessionsPerSecond: sessionsPerSecond, sessions: { [registry] in registry.sessions(listeningTo: $0) },
            tell: { [self] sessions, notice in
                take(notice, by: sessions)
                var waited = Set<ObjectIdentifier>()
                for session in sessions where waited.insert(ObjectIdentifier(session.eventLoop)).inserted {
                    try? await session.eventLoop.submit {}.get()
                }
            }, now: clock.now, pause: pause)
        pacer.withLock { $0 = made }
        return made
    }

    /// How many sessions each instance has here, of every instance that is known.
    func sessionsByInstance() -> [InstanceID: Int] { registry.counts(of: directory.instanceIDs) }

    /// Whether instances and configurations are known.
    var isLoaded: Bool { directory.isLoaded }

    private var currentLease: GatewayLease? { lease.withLock { $0 } }

    /// What the sessions' rules look at now.
    func surroundings() -> SessionSurroundings {
        var world = unchanging
        world.now = clock.now()
        (world.databaseTime, world.machineTime) = (databaseTime.now, clock.wallTime())
        if let standing = currentLease?.standing(at: world.now) {
            (world.leaseEpoch, world.holdsLease) = standing
        }
        return world
    }

    /// When a device that is closed so may come back: drawn, so that not all do at once.
    func retryAfterMilliseconds(of code: CloseCode) -> UInt32 {
        let range = code.retryAfterMilliseconds
        return range.lowerBound + UInt32(random() * Double(range.upperBound - range.lowerBound))
    }

    // MARK: Events for many sessions

    /// Gives an event to sessions, one turn of each event loop for all of its sessions.
    func tell(_ sessions: [SessionHandle], _ event: SessionEvent) {
        SessionTurn.take(sessions, on: \.eventLoop) { sessions in
            // Each by what holds at its own moment: a verdict or the lease may end among them.
            for session in sessions { session.handler.value.handle(event) }
        }
    }

    /// A new lease holds. After a failover it is the first word of the new epoch, so what was read in the epoch before
    /// is forgotten: it may be part of the history that was lost.
    private func leaseTaken() {
        #if KNOWN_BAD
            if !KnownBad.tailsOutliveEpoch.isOn { tails.forgetAll() }
        #else
            tails.forgetAll()
        #endif
        announceAll()
    }

    /// Every session announces itself and reads where its channels stand: after a new lease, or a broker that was
    /// away, anything may have been missed.
    func announceAll() {
        #if KNOWN_BAD
            if KnownBad.noAnnouncement.isOn { return }
        #endif
        tell(registry.all, .announcementDue)
    }

    /// A second has passed: some devices go where there are fewer, while this gateway has more than its part.
    func giveAway() {
        let count = registry.count
        let surplus = rebalance.withLock { $0.next(own: count) }
        guard surplus > 0 else { return }
        // Those that are busy now stay: asking a few more makes up for them.
        tell(registry.some(surplus * 5 / 4), .surplus)
    }

    /// Configurations have changed: what was withheld may go out.
    func surroundingsChanged() {
        tails.forgetAll()
        keys.forgetAll()
        tell(registry.all, .surroundingsChanged)
        currentLease?.controlDataChanged()
    }

    /// A notice of a global channel came: what it recalls is kept for nobody.
    func recalled(_ notice: ChannelNotice) {
        tails.recalled(Set(notice.entries.compactMap(\.recalls)), channelID: notice.channelID)
    }

    /// Leaves an immediate global push to the pacer.
    func pace(_ notice: ChannelNotice) { pacer.withLock { $0 }?.add(notice) }

    /// Asks which channels got an oplog since the last sweep, and gives the answer as notices: finds the channels of lost
    /// notices. The first sweep under a lease begins where the lease was taken; every session is registered after that.
    func sweep() async {
        #if KNOWN_BAD
            if KnownBad.noSweep.isOn { return }
        #endif
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
                $0.open.deviceConnectionNumber = identity.connectionNumber
                $0.open.registrationNumber = registration
                $0.open.connectionEpoch = connectionEpoch
                $0.open.opensBind = opensBind
                switch claim {
                case .requested?, .latestConnection?: $0.open.takesOwnership = true
                case .given(let epoch)?: $0.open.ownershipEpoch = epoch
                case nil: break
                }
                $0.open.verdictValidMs = verdictFor.wholeMilliseconds
                $0.open.suspended = identity.suspended.map(\.text).sorted()
                if identity.userID != nil { $0.open.sessionDigest = Data(identity.sessionDigest) }
                $0.open.deviceSecretDigest = Data(identity.secretDigest)
                $0.open.bindsDevice = directory.instance(identity.instanceID)?.bindsDevices ?? false
                if let token = identity.pushToken { $0.open.pushToken = token.bus }
                $0.open.filtered = identity.filtered.map(\.text)
                if !identity.filtered.isEmpty { $0.open.parameters = identity.parameters.map(\.bus) }
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

    /// Updates what the store knows of a session. When the store does not answer, the session announces itself: until it
    /// knows, the store answers NOT_ONLINE for a device that is eligible.
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
            if case .failure = result { tell([session], .announcementDue) }
        }
    }

    /// Nobody waits for the answer: a session that stays on record by mistake goes with the next one of its device.
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

    /// Reads a page, of a global channel from memory where that can be.
    func fetch(_ request: PageRequest, for session: SessionHandle) {
        // A threshold that counts by a filter is the session's own.
        guard request.isGlobal, request.filters == nil else { return read(request, for: session) }
        tails.page(for: request) { [self] page in
            guard let page else { return read(request, for: session) }
            tell([session], .fetched(page, channelID: request.channelID, bindNumber: request.bindNumber))
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
            tell([session], .fetched(page, channelID: request.channelID, bindNumber: request.bindNumber))
        }
    }

    /// Reads a page of history; without an answer the device is told to ask again.
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
            tell([session], .historyRead(page, of: read.id))
        }
    }

    /// Reads where channels stand; without an answer the device is told to ask again.
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
            tell([session], .summaryRead(page, of: read.id))
        }
    }

    /// Reports are answered once they are durable; one without an answer is repeated by the device.
    func confirm(_ report: ConfirmedReport, for session: SessionHandle) { reporter.confirmed(report, of: session) }

    /// Counts a repeat durably before it goes out; what is not counted is asked for again (reliability R7).
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
            tell([session], .resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats))
        }
    }
}
