import BusMessages
import DeviceProtocol
import SyncModel

/// Data, requests and messages of a session that wait for a verdict or for a registration; pure.
struct VerdictQueue {
    /// Data that was read for the device and waits for a verdict.
    struct Parked {
        /// The data.
        enum Read {
            case page(Mss_Bus_V1_FetchReply, channelID: Int64)
            case history(Mss_Bus_V1_HistoryReply, id: UInt64)
            case summary(Mss_Bus_V1_SummaryReply, id: UInt64)
            case resend(channelID: Int64, OplogID, repeats: Int)
        }

        let read: Read
        let since: ContinuousClock.Instant
    }

    /// The amount is bounded: a page and a resend of each channel, and the unanswered requests of the device.
    private var parked: [Parked] = []
    /// Requests of the device that wait for a verdict: at most one of operations, of parameters and of confirmations.
    private var heldRequests: [Mss_Device_V1_Packet] = []
    /// A verdict arrived during a registration, so the store must be updated afterwards.
    private var owesStoreUpdate = false
    /// Session state to send after BindResult.
    private var deferredState: Mss_Device_V1_Packet?

    // MARK: Parked data

    /// Keeps data until the next verdict.
    mutating func park(_ read: Parked.Read, at now: ContinuousClock.Instant) {
        parked.append(Parked(read: read, since: now))
    }

    /// Removes the parked data that this verdict decides. Data parked after the verdict was requested stays for the
    /// next one. So one request serves all waiting data, and new data never restarts it.
    ///
    /// - Parameter askedAt: when the fresh verdict was requested; nil: everything is decided.
    /// - Returns: the decided data, and the data that stays.
    mutating func dequeue(
        upto askedAt: ContinuousClock.Instant?
    ) -> (decided: [Parked.Read], later: [Parked.Read]) {
        let waited = parked
        parked = askedAt.map { askedAt in waited.filter { $0.since > askedAt } } ?? []
        return (waited.dropLast(parked.count).map(\.read), parked.map(\.read))
    }

    /// Removes all parked data, because the caller decides it now.
    mutating func removeParked() { parked = [] }

    // MARK: Requests of the device

    /// Keeps a request of the device until the verdict arrives. A device has one report in flight; a new one replaces
    /// it.
    mutating func hold(_ request: Mss_Device_V1_Packet) {
        if request.hasReport { heldRequests.removeAll(where: \.hasReport) }
        heldRequests.append(request)
    }

    /// Removes and returns the kept requests.
    mutating func dequeueRequests() -> [Mss_Device_V1_Packet] {
        defer { heldRequests = [] }
        return heldRequests
    }

    /// Whether a frame of operations waits for a verdict. It was not sent to the relay.
    var holdsOperations: Bool { heldRequests.contains(where: \.hasOperations) }

    // MARK: Messages after a registration

    /// Records that the store must be updated after the registration in flight.
    mutating func oweStoreUpdate() { owesStoreUpdate = true }

    /// Returns whether the store must be updated, and marks it as updated.
    mutating func dequeueStoreUpdate() -> Bool {
        defer { owesStoreUpdate = false }
        return owesStoreUpdate
    }

    /// Keeps the session state until BindResult is sent.
    mutating func deferState(_ state: Mss_Device_V1_Packet) { deferredState = state }

    /// Removes and returns the session state that follows BindResult.
    mutating func dequeueState() -> Mss_Device_V1_Packet? {
        defer { deferredState = nil }
        return deferredState
    }

    /// Removes the state of the user, because another bind begins. Parked data stays: it is returned or answered.
    mutating func forgetUser() { (heldRequests, owesStoreUpdate, deferredState) = ([], false, nil) }
}

extension Mss_Device_V1_Packet {
    fileprivate var hasReport: Bool { if case .confirmReport? = body { true } else { false } }
    fileprivate var hasOperations: Bool { if case .submitOperations? = body { true } else { false } }
}
