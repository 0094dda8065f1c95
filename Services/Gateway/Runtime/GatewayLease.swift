import BusMessages
import Logging
import ServiceKit
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization

/// The lease of this gateway. While it holds, the writer counts on the gateway's sessions. Without it, the gateway
/// sends no data (Design.md#leases-and-fencing).
///
/// The lease counts from its request, on the steady clock, so a paused process sees that it ended before it writes.
/// A change of control data does not wait for gateways without a lease. So a new lease holds only when the gateway has
/// the control data that was in force when the lease was given.
final class GatewayLease: Service, Sendable {
    private struct State {
        var epoch: Int64 = 0
        var until: ContinuousClock.Instant?
        /// The control version in force when the lease was given.
        var controlVersion: Int64 = 0
        /// The database's snapshot when the lease was given.
        var snapshot = ""
        /// When the last request was sent.
        var sentAt: ContinuousClock.Instant?
        /// A request is due before the interval of renewals is over: the last one failed, or control data changed.
        var isDue = false
        /// Requests without a reply yet.
        var inFlight = 0
        /// Requests under an earlier lease are in flight. Each may give another new lease.
        var isSettling = false

        /// Whether the lease has not ended at this instant.
        func isHeld(at now: ContinuousClock.Instant) -> Bool { until.map { now < $0 } ?? false }

        /// Whether a request may be sent now.
        ///
        /// A renewal does not wait for the reply to the one before: a writer that hangs, or a hung node of the broker,
        /// may have taken it. Requests for a new lease replace each other's, so only one is in flight.
        func maySend(at now: ContinuousClock.Instant) -> Bool {
            inFlight < (isHeld(at: now) && !isSettling ? 2 : 1)
        }

        /// Whether a request is due now.
        func isDue(at now: ContinuousClock.Instant) -> Bool {
            guard !isDue, let sentAt, isHeld(at: now) else { return true }
            return now >= sentAt + Limits.gatewayLeaseRenewal
        }
    }

    /// The interval of checks for a due request.
    static let checkEvery = Duration.milliseconds(250)

    private let state = Mutex(State())
    private let gatewayID: String
    private let bus: MessageBus
    private let clock: ProcessClock
    private let logger: Logger
    private let controlVersion: @Sendable () -> Int64
    private let sessions: @Sendable () -> Int
    private let onTaken: @Sendable () -> Void
    private let onRegained: @Sendable () -> Void
    private let onFleet: @Sendable (Rebalance.Fleet) -> Void

    /// - Parameters:
    ///   - controlVersion: returns the version of the control data that sessions use.
    ///   - sessions: returns the number of open sessions.
    ///   - onTaken: called for each new lease. Every session must register again.
    ///   - onRegained: called when the same lease holds again after its end. Data that was withheld meanwhile may be
    ///     sent.
    ///   - onFleet: called with the store's figures about all gateways.
    init(
        gatewayID: String, bus: MessageBus, clock: ProcessClock, logger: Logger,
        controlVersion: @escaping @Sendable () -> Int64, sessions: @escaping @Sendable () -> Int = { 0 },
        onTaken: @escaping @Sendable () -> Void, onRegained: @escaping @Sendable () -> Void = {},
        onFleet: @escaping @Sendable (Rebalance.Fleet) -> Void = { _ in }
    ) {
        self.gatewayID = gatewayID
        self.bus = bus
        self.clock = clock
        self.controlVersion = controlVersion
        self.logger = logger
        self.sessions = sessions
        self.onTaken = onTaken
        self.onRegained = onRegained
        self.onFleet = onFleet
    }

    /// The epoch of the last lease; 0 before the first.
    var epoch: Int64 { state.withLock { $0.epoch } }

    /// The epoch of the last lease, and the database's snapshot when it was given.
    var taken: (epoch: Int64, snapshot: String) { state.withLock { ($0.epoch, $0.snapshot) } }

    /// Whether the lease holds at this instant.
    func holds(at now: ContinuousClock.Instant) -> Bool { standing(at: now, controlVersion: controlVersion()).holds }

    /// The epoch of the last lease, and whether the lease holds at this instant.
    ///
    /// - Parameter controlVersion: of the control data for which the answer counts.
    func standing(at now: ContinuousClock.Instant, controlVersion: Int64) -> (epoch: Int64, holds: Bool) {
        let state = state.withLock { $0 }
        return (state.epoch, state.isHeld(at: now) && controlVersion >= state.controlVersion)
    }

    /// Renews the lease at once, so that the store learns of new control data before the next renewal.
    func controlDataChanged() {
        guard holds(at: clock.now()) else { return }
        state.withLock { $0.isDue = true }
        renewIfDue()
    }

    func run() async throws {
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            renewIfDue()
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.checkEvery) }
        }
    }

    /// Renews the lease, or requests a new one, if that is due and may be sent.
    ///
    /// A request is due a second after the last one. It is due at once without a lease and after a failed request: the
    /// database may have failed over to a server that does not know the sessions.
    func renewIfDue() {
        let requested = clock.now()
        let held: Int64? = state.withLock { state in
            guard state.isDue(at: requested), state.maySend(at: requested) else { return nil }
            state.isDue = false
            state.sentAt = requested
            state.inFlight += 1
            return state.epoch
        }
        guard let held else { return }
        let (version, count) = (controlVersion(), sessions())
        bus.request(.lease, as: Mss_Bus_V1_SessionCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.renewLease.gatewayID = gatewayID
                $0.renewLease.epoch = held
                $0.renewLease.controlVersion = version
                $0.renewLease.sessions = UInt64(clamping: count)
            }
        } completion: { [weak self] result in
            self?.complete(result, requestedAt: requested, under: held)
        }
    }

    private func complete(
        _ result: Result<Mss_Bus_V1_Reply, BusError>, requestedAt: ContinuousClock.Instant, under held: Int64
    ) {
        if case .success(let reply) = result, case .lease(let lease)? = reply.body {
            apply(lease, requestedAt: requestedAt, under: held)
        }
        state.withLock { state in
            state.inFlight -= 1
            if state.inFlight == 0 { state.isSettling = false }
            if case .failure = result { state.isDue = true }
        }
        if case .failure(let error) = result {
            logger.warning("a renewal of the lease of this gateway failed; retrying", metadata: ["error": "\(error)"])
        }
    }

    /// Applies the store's reply to a request.
    ///
    /// - Parameters:
    ///   - requestedAt: the instant before the request was sent.
    ///   - held: the epoch of the lease that the request was to renew; 0: of none.
    func apply(_ lease: Mss_Bus_V1_LeaseReply, requestedAt: ContinuousClock.Instant, under held: Int64) {
        let change: (isNew: Bool, isReplaced: Bool, isRegained: Bool)? = state.withLock { state in
            // Two requests under one lease can give two new ones: the higher counts, whichever reply comes first.
            guard held == state.epoch || lease.epoch > state.epoch else { return nil }
            let (now, until, former) = (clock.now(), requestedAt + Limits.gatewayLease, state.until)
            guard lease.epoch != state.epoch else {
                state.until = max(until, former ?? until)
                return (false, false, former.map { $0 <= now && now < until } ?? false)
            }
            (state.epoch, state.until) = (lease.epoch, until)
            (state.controlVersion, state.snapshot) = (lease.controlVersion, lease.snapshot)
            state.isSettling = true
            return (true, former.map { requestedAt < $0 } ?? false, false)
        }
        guard let change else { return }
        onFleet(Rebalance.Fleet(gateways: Int(lease.gateways), sessions: Int(clamping: lease.sessions)))
        guard change.isNew else {
            if change.isRegained { onRegained() }
            return
        }
        if change.isReplaced {
            logger.warning(
                """
                the lease of this gateway was replaced before its end: the database failed over, or another gateway \
                has the same MSS_GATEWAY_ID; if this repeats, give each gateway an id of its own
                """, metadata: ["gateway": "\(gatewayID)"])
        }
        logger.info("this gateway has a new lease", metadata: ["epoch": "\(lease.epoch)"])
        onTaken()
    }
}
