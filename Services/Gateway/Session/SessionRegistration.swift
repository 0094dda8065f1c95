import BusMessages
import SyncModel

/// The registration of a session in the store: when it is sent, and the meaning of its reply; pure.
///
/// One registration is in flight at a time. A bind that comes meanwhile is registered after the reply.
struct SessionRegistration {
    /// The meaning of a reply.
    enum Outcome {
        /// The session is registered.
        case accepted
        /// A registration that is sent now replaces this one: the bind or the control data has changed.
        case outdated
        /// The registration failed and is repeated after a delay.
        case failed
        /// The device id belongs to another secret.
        case wrongSecret
        /// A newer connection of this device is registered.
        case superseded
    }

    /// The last registration that was sent.
    private struct Request {
        /// The lease under which it was sent.
        var leaseEpoch: Int64 = 0
        /// The lease held then.
        var isUnderLease = false
        /// Control data changed meanwhile, so the reply may follow the former rules.
        var isOutdated = false
    }

    /// The first registration succeeded: data is sent and reports are accepted. Before that, the session is opening.
    private(set) var isOpen = false
    /// The number of the connection, from the store; 0: not registered.
    private(set) var connectionEpoch: Int64 = 0
    /// The lease under which the session is on record. Under a later lease it must register again.
    private(set) var leaseEpoch: Int64 = 0
    /// A registration was sent and its reply has not come.
    private(set) var isInFlight = false
    /// The last registration failed.
    private(set) var needsRetry = false
    /// The bind is not registered yet.
    private(set) var opensBind = false
    /// Another registration is needed: the reply to the one in flight may be too old.
    private(set) var isWantedAgain = false
    private var request = Request()
    /// The newest known connection of this device, while this one is not registered.
    private var newestConnection: Int64 = 0

    /// Whether the reply to a registration will bring the channels' heads.
    var awaitsReply: Bool { !isOpen || isInFlight || needsRetry }

    /// Whether the store knows this session under the gateway's current lease.
    func isOnRecord(in context: SessionContext) -> Bool {
        context.holdsLease && leaseEpoch == context.leaseEpoch && connectionEpoch > 0
    }

    /// Records that a registration is sent.
    mutating func begin(in context: SessionContext) {
        isInFlight = true
        needsRetry = false
        request = Request(leaseEpoch: context.leaseEpoch, isUnderLease: context.holdsLease)
    }

    /// Records that another registration is needed.
    ///
    /// - Returns: whether it can be sent now; otherwise it is sent after the reply to the one in flight.
    mutating func wantAgain() -> Bool {
        isWantedAgain = isInFlight
        return !isInFlight
    }

    /// Records that control data or the lease changed.
    mutating func contextChanged() {
        if isInFlight { request.isOutdated = true }
    }

    /// Records that a bind must be registered.
    mutating func addBind() { opensBind = true }

    /// Applies the reply to a registration.
    ///
    /// - Parameters:
    ///   - bindNumber: the bind of the registration.
    ///   - current: the current bind of the session.
    mutating func apply(
        _ reply: Mss_Bus_V1_SessionReply, bindNumber: UInt32, current: UInt32, in context: SessionContext
    ) -> Outcome {
        isInFlight = false
        if reply.leaseLost { return fail() }
        if reply.wrongDeviceSecret { return .wrongSecret }
        guard reply.connectionEpoch > 0, reply.connectionEpoch >= newestConnection else { return .superseded }
        connectionEpoch = reply.connectionEpoch
        leaseEpoch = request.leaseEpoch
        guard bindNumber == current, !request.isOutdated else { return .outdated }
        // Only under a lease is the control data of this gateway, and of the registration, the one in force.
        let isInForce = request.isUnderLease && context.holdsLease && leaseEpoch == context.leaseEpoch
        return isOpen || isInForce ? .accepted : fail()
    }

    /// Records that no reply came, or that the store refused the registration under its lease.
    @discardableResult
    mutating func fail() -> Outcome {
        isInFlight = false
        needsRetry = true
        return .failed
    }

    /// Records that the session is open.
    ///
    /// - Returns: whether this is new.
    mutating func open() -> Bool {
        defer { isOpen = true }
        return !isOpen
    }

    /// Records that the bind is registered.
    ///
    /// - Returns: whether this is new.
    mutating func openBind() -> Bool {
        defer { opensBind = false }
        return opensBind
    }

    /// Records the registration of another connection of this device. An unregistered session learns from its own
    /// registration which of the two is newer.
    ///
    /// - Returns: whether the other connection is newer than this registered one.
    mutating func supersede(by epoch: Int64) -> Bool {
        if !isOpen { newestConnection = max(newestConnection, epoch) }
        return isOpen && connectionEpoch < epoch
    }
}
