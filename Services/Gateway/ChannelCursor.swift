import DeviceProtocol
import SyncModel

/// Where one session stands in one channel; pure.
///
/// Positions only rise: `stored ≤ announced ≤ sent ≤ head`, where announced trails sent by what was skipped.
struct ChannelCursor {
    let channelID: Int64
    /// Everything up to here was sent to the device or skipped for good.
    private(set) var sent: OplogID
    /// The device's own position: the `after` of the next batch on the wire.
    private(set) var announced: OplogID
    /// The device has this on disk.
    private(set) var stored: OplogID
    /// The device itself has said so, now or before: `stored` also counts what was passed over.
    private(set) var acknowledged: OplogID
    /// The server's record reaches as far, or was asked to.
    private var recorded: OplogID
    /// The position that the device claimed when it was bound, or when the cursor before this one ended. A simple device
    /// need not name a position, so for it the recorded position counts as well.
    private let claimed: OplogID
    /// The position that the device claims counts here; otherwise only the recorded one does (spec D7, D8).
    let countsClaim: Bool
    /// The newest oplog id known to exist.
    private(set) var head: OplogID
    /// A page is on its way.
    var isFetching = false
    /// What of the channel is a backlog, to which a threshold applies (spec D10).
    enum Backlog: Hashable, Sendable {
        /// Nothing: the session was open and eligible when it came, or the backlog's first page has been handed out.
        case none
        /// The session is not eligible now: everything up to the head at the moment at which it becomes so.
        case waits
        /// Everything up to the head at the opening of the session. It stays what it was when a page fails, and when
        /// what was not written is taken back.
        case open(upto: OplogID)
    }

    private(set) var backlog: Backlog
    /// The backlog of the session's opening has not been sent yet.
    var holdsCaughtUp: Bool
    /// Entries above `sent` that are stored nowhere: they wait here until what lies before them has been read.
    private(set) var live: [Oplog] = []
    /// The last entries that were stored nowhere and were handed out: a repeat of such a push comes under the same id.
    private var handedLive: [OplogID] = []
    /// Recalled oplogs that were not written to the connection: a page or notice from before the recall may still bring
    /// them, and a batch that waits to be written may contain them.
    private var recalled: Set<OplogID> = []
    /// Of a simple device; nil: the device's library has a ladder of its own.
    var resends: BatchResends?
    /// Oplogs that a simple device has acknowledged, and that were not reported.
    private var confirmed: [OplogID] = []
    /// Valid oplogs up to here were left out, which the next batch tells; zero: none.
    private var passedOver = OplogID.zero
    /// Bytes of batches sent and not yet stored, by the batch's end.
    private var unacknowledged: [(upto: OplogID, bytes: Int)] = []
    /// Batches that were taken and have not been written to the connection.
    private var unwritten: [Unwritten] = []

    /// Where the cursor stood before a batch was taken.
    private struct Unwritten {
        /// The end of the batch on the wire.
        var upto: OplogID
        let sent: OplogID
        let announced: OplogID
        let passedOver: OplogID
        let backlog: Backlog
        /// Of the batch: what cannot be read again.
        var live: [Oplog] = []
        /// Ids of the batch's entries.
        var oplogs: [OplogID] = []
    }

    /// - Parameters:
    ///   - recorded: the sync point on the server.
    ///   - acknowledged: what this store has acknowledged or claimed before; zero: nothing is known of it. A store that
    ///     claims less now is an older copy of itself: its own position counts (spec D7), and what it has lost comes
    ///     again.
    ///   - reported: the device's own, nil when it has none for this channel.
    ///   - countsClaim: whether the device's own counts. Where it does not, what the device has above the record is
    ///     sent once more, and the device drops it as known: its acknowledgement moves the record.
    ///   - isSimple: the device is simple. It had everything up to the recorded position, so it hears of recalls up to
    ///     there.
    ///   - isOpening: the session opens with this head; otherwise it was open when the channel's oplogs came.
    init(
        channelID: Int64, head: OplogID, recorded: OplogID, acknowledged: OplogID = .zero, reported: OplogID?,
        countsClaim: Bool = true, isSimple: Bool = false, isOpening: Bool = true
    ) {
        self.channelID = channelID
        self.head = head
        self.countsClaim = countsClaim
        let own = reported ?? .zero
        claimed = isSimple ? max(own, recorded) : own
        // A device can be above the head after a failover that lost commits; it is clamped, never refused.
        let known = min(own, head)
        #if KNOWN_BAD
            let isOlderCopy = countsClaim && acknowledged > known && !KnownBad.olderStorePassedOver.isOn
        #else
            let isOlderCopy = countsClaim && acknowledged > known
        #endif
        sent = isOlderCopy ? known : min(countsClaim ? max(recorded, known) : recorded, head)
        announced = min(known, sent)
        stored = isOlderCopy ? known : recorded
        self.recorded = recorded
        self.acknowledged = max(acknowledged, countsClaim ? known : .zero)
        #if KNOWN_BAD
            if KnownBad.openingFromHead.isOn { sent = head }
        #endif
        backlog = isOpening && sent < head ? .open(upto: head) : .none
        holdsCaughtUp = sent < head
        // What lies between is on no store of this device: the store is new, or older than the record.
        passOver(upto: sent)
    }

    /// The device has this, or it was written to the device, as far as it says itself.
    var held: OplogID { max(unwritten.first?.announced ?? announced, claimed) }

    /// Whether a device is to hear that an oplog was recalled: the device has the oplog, or the oplog waits to be
    /// written before the tombstone. `takeBack` takes both back.
    private func hearsOfRecall(of id: OplogID) -> Bool {
        #if KNOWN_BAD
            if KnownBad.tombstoneOfWaitingDropped.isOn { return id <= held }
        #endif
        return id <= held || unwritten.contains { $0.oplogs.contains(id) }
    }

    /// Whether something is to be read.
    var isBehind: Bool { sent < head }

    /// Notes that the channel reaches at least this far.
    mutating func learn(head: OplogID) {
        #if KNOWN_BAD
            if KnownBad.headsIgnored.isOn { return }
        #endif
        self.head = max(self.head, head)
    }

    /// Notes that oplogs above the device's position and up to here are left out although they are valid.
    mutating func passOver(upto: OplogID) {
        if upto > announced { passedOver = max(passedOver, upto) }
    }

    /// Up to here the device has acknowledged before what a batch above this position brings; zero: none of it.
    func againUpto(above after: OplogID) -> OplogID { acknowledged > after ? acknowledged : .zero }

    /// The session is not eligible for the channel now.
    mutating func suspendBacklog() { backlog = .waits }

    /// The head up to which a threshold counts when the next page is read; nil: that page is no backlog's first. Called
    /// while the session is eligible.
    mutating func openBacklog() -> OplogID? {
        if backlog == .waits { backlog = .open(upto: head) }
        guard case .open(let upto) = backlog else { return nil }
        return upto
    }

    /// The first page of the backlog has been handed out.
    mutating func beganBacklog() { backlog = .none }

    /// Where a page ends for this session: before the first entry whose notice has not come yet.
    ///
    /// - Parameter awaited: entries of the page that are stored nowhere, in order.
    func end(of upto: OplogID, awaiting awaited: [OplogID]) -> OplogID {
        #if KNOWN_BAD
            if KnownBad.liveGapPassed.isOn { return upto }
        #endif
        let missing = awaited.first { id in id > sent && id <= upto && !live.contains { $0.id == id } }
        return missing.map { OplogID($0.value - 1) } ?? upto
    }

    /// Notes which oplogs were recalled, before their tombstones come in order.
    mutating func learnRecalls(of ids: [OplogID]) {
        for id in ids {
            if id > writtenUpto { recalled.insert(id) }
            resends?.recalled(id)
        }
    }

    /// Up to here nothing waits to be written.
    private var writtenUpto: OplogID { unwritten.first?.sent ?? sent }

    /// Whether an oplog was recalled before it was written.
    func isRecalled(_ id: OplogID) -> Bool { recalled.contains(id) }

    /// What is still to be written of a batch that waits.
    ///
    /// - Returns: the batch; of a repeat without the entries that were recalled; nil: the batch was taken back, or the
    ///   repeat is of a batch that the device has acknowledged.
    func owed(_ batch: Mss_Device_V1_ChannelBatch) -> Mss_Device_V1_ChannelBatch? {
        let upto = OplogID(batch.upto)
        if upto > unwritten.first?.announced ?? announced {
            return unwritten.contains { $0.upto == upto } ? batch : nil
        }
        return resends?.owed(batch)
    }

    /// Room for live entries; a session that is further behind loses those that come on top, as if it were offline.
    private static let liveMax = 64

    /// Keeps what cannot be read later.
    mutating func keepLive(_ entries: [Oplog]) {
        let new = entries.filter { entry in
            !entry.isPersistent && entry.id > sent && !live.contains { $0.id == entry.id }
        }
        live += new.prefix(max(0, Self.liveMax - live.count))
    }

    /// Whether an entry that is stored nowhere was handed out in this session, or waits to be.
    func holdsLive(_ id: OplogID) -> Bool { handedLive.contains(id) || live.contains { $0.id == id } }

    /// What of a batch goes out, and what a rule passes over.
    struct Taken {
        /// One on the wire.
        typealias Batch = (after: OplogID, upto: OplogID, entries: [Oplog], passedOverUpto: OplogID)

        /// In their order; none when nothing goes out.
        var batches: [Batch] = []
        var skipped: [SkipReason: [OplogID]] = [:]
    }

    /// Takes a batch that applies: the position moves, and what is new comes back with its place on the wire.
    ///
    /// - Parameters:
    ///   - discardedUpto: a threshold has left out valid oplogs up to here.
    ///   - filters: what decides for whom an entry is; a tombstone is for everybody who has its oplog.
    ///   - batchEntries: entries of one batch at the most.
    mutating func take(
        upto: OplogID, entries: [Oplog], discardedUpto: OplogID = .zero, device: DeviceTraits, now: WallTime,
        filters: FilterHistory? = nil, batchEntries: Int = .max
    ) -> Taken {
        let before = Unwritten(
            upto: upto, sent: sent, announced: announced, passedOver: passedOver, backlog: backlog)
        passOver(upto: discardedUpto)
        let waited = live.filter { $0.id <= upto }
        live.removeAll { $0.id <= upto }
        let all = waited.isEmpty ? entries : (entries + waited).sorted { $0.id < $1.id }
        var taken = Taken()
        var new: [Oplog] = []
        // A kept entry, or one that is to be repeated, may have been recalled: its tombstone here may be the first sign.
        let recalledHere = all.compactMap(\.recalls)
        for id in recalledHere { resends?.recalled(id) }
        let dropped = recalled.union(recalledHere)
        for entry in all where entry.id > sent && !dropped.contains(entry.id) {
            #if KNOWN_BAD
                if KnownBad.targetingIgnored.isOn {
                    new.append(entry)
                    continue
                }
            #endif
            if let reason = entry.skipReason(for: device, now: now) {
                taken.skipped[reason, default: []].append(entry.id)
            } else if entry.recalls == nil, filters?.flows(entry.id, attributes: entry.attributes) == false {
                // Not for this receiver: a changed parameter may bring it later, so nobody is told of it.
                continue
            } else if entry.recalls.map({ hearsOfRecall(of: $0) }) ?? true {
                // The gateway sends a tombstone only to a device that has the original or gets it (spec H7).
                new.append(entry)
            }
        }
        sent = max(sent, upto)
        head = max(head, sent)
        if !new.isEmpty { announce(new, before: before, batchEntries: batchEntries, in: &taken) }
        forgetWrittenRecalls()
        return taken
    }

    /// Makes batches of what goes out, each of which can be written and taken back by itself.
    private mutating func announce(_ new: [Oplog], before: Unwritten, batchEntries: Int, in taken: inout Taken) {
        var (rest, before) = (new[...], before)
        while !rest.isEmpty {
            let entries = Array(rest.prefix(batchEntries))
            rest = rest.dropFirst(entries.count)
            let after = announced
            announced = rest.isEmpty ? max(announced, sent) : entries[entries.count - 1].id
            unacknowledged.append((announced, entries.reduce(0) { $0 + $1.payload.count }))
            (before.upto, before.live) = (announced, entries.filter { !$0.isPersistent })
            before.oplogs = entries.map(\.id)
            if !before.live.isEmpty { handedLive = (handedLive + before.live.map(\.id)).suffix(Self.liveMax) }
            unwritten.append(before)
            taken.batches.append((after, announced, entries, passedOver))
            passedOver = .zero
            before = Unwritten(
                upto: announced, sent: announced, announced: announced, passedOver: .zero, backlog: .none)
        }
    }

    private mutating func forgetWrittenRecalls() {
        if !recalled.isEmpty { recalled = recalled.filter { $0 > writtenUpto } }
    }

    /// A batch has been written to the connection: it cannot be taken back any more.
    mutating func written(upto: OplogID, at now: ContinuousClock.Instant) {
        unwritten.removeAll { $0.upto <= upto }
        resends?.written(upto: upto, now: now)
        forgetWrittenRecalls()
    }

    /// What was not written may not go out: the cursor stands where it stood before, and reads it again.
    ///
    /// - Returns: the bytes that are free again.
    mutating func takeBack() -> Int {
        guard let first = unwritten.first else { return 0 }
        let freed = unacknowledged.filter { $0.upto > first.announced }.reduce(0) { $0 + $1.bytes }
        unacknowledged.removeAll { $0.upto > first.announced }
        live = unwritten.flatMap(\.live) + live
        sent = max(first.sent, stored)
        (announced, passedOver, backlog) = (first.announced, first.passedOver, first.backlog)
        handedLive.removeAll { $0 > sent }
        resends?.takeBack(after: announced)
        unwritten = []
        return freed
    }

    /// With nothing under way to the device it has all that was sent or skipped, and what it said it has when it
    /// connected (spec D12).
    mutating func settle() {
        #if KNOWN_BAD
            if KnownBad.settlesUnderWay.isOn { stored = max(stored, sent) }
        #endif
        if unacknowledged.isEmpty { stored = max(stored, sent) }
    }

    /// Something was stored, or acknowledged by a simple device, and not reported.
    var owesReport: Bool { stored > recorded || !confirmed.isEmpty }

    /// Takes what is to be reported: the sync point to record, nil when it did not rise, and what a simple device has
    /// acknowledged.
    mutating func takeReport() -> (upto: OplogID?, confirmed: [OplogID]) {
        defer { (recorded, confirmed) = (max(recorded, stored), []) }
        return (stored > recorded ? stored : nil, confirmed)
    }

    /// Takes over, from the cursor of the same channel before this one, what no page tells: tombstones to come, what
    /// exists nowhere else, what is under way to the device, and what is not reported of a simple device.
    ///
    /// - Parameter onRecord: what the store has acknowledged, as the server knows it.
    mutating func takeOver(from former: ChannelCursor, acknowledged onRecord: OplogID) {
        recalled = former.recalled.filter { $0 > sent }
        confirmed = former.confirmed
        live = (former.unwritten.flatMap(\.live) + former.live).filter { $0.id > sent }
        handedLive = former.handedLive.filter { id in !live.contains { $0.id == id } }
        if backlog == .none { backlog = former.backlog }
        acknowledged = max(onRecord, former.acknowledged)
        // Where the record counts, everything above it is sent once more.
        guard countsClaim else { return }
        // Written and not acknowledged: it counts as stored once the device says so.
        unacknowledged = former.unacknowledged.filter { $0.upto <= announced }
        resends = former.resends
        resends?.takeBack(after: announced)
    }

    /// Takes the acknowledgement of a simple device: its app has the batches up to there.
    mutating func confirm(upto: OplogID, now: ContinuousClock.Instant) {
        confirmed += resends?.acknowledged(upto: upto, now: now) ?? []
    }

    /// Takes the device's acknowledgement, clamped to what it was sent; what was skipped behind it counts as stored.
    ///
    /// - Returns: the bytes that are free again.
    mutating func acknowledge(upto: OplogID) -> Int {
        // What waits to be written was not sent yet.
        let sent = unwritten.first?.announced ?? announced
        #if KNOWN_BAD
            let upto = KnownBad.ackUnclamped.isOn ? upto : min(upto, sent)
        #else
            let upto = min(upto, sent)
        #endif
        acknowledged = max(acknowledged, upto)
        var freed = 0
        while let first = unacknowledged.first, first.upto <= upto {
            freed += first.bytes
            unacknowledged.removeFirst()
        }
        settle()
        stored = max(stored, upto)
        return freed
    }

    /// Bytes sent and not yet stored.
    var unacknowledgedBytes: Int { unacknowledged.reduce(0) { $0 + $1.bytes } }
}
