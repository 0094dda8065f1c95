import DeviceProtocol
import SyncModel

/// The position of one session in one channel; pure.
///
/// Positions only rise: `stored ≤ announced ≤ sent ≤ head`. `announced` is below `sent` while oplogs were skipped after
/// the last batch.
struct ChannelCursor {
    let channelID: Int64
    /// Every oplog up to here was sent to the device, or skipped for good.
    private(set) var sent: OplogID
    /// The position that the device has after the batches sent so far: the `after` of the next batch.
    private(set) var announced: OplogID
    /// The device has stored everything up to here.
    private(set) var stored: OplogID
    /// The part of `stored` that the device itself acknowledged or reported. `stored` also counts skipped and discarded
    /// oplogs.
    private(set) var acknowledged: OplogID
    /// The sync point that was sent to the server.
    private var recorded: OplogID
    /// The position that the device reported at bind, or the position of the cursor before this one. A simple device
    /// need not report a position, so for it the server's sync point counts too.
    private let claimed: OplogID
    /// Whether the reported position counts; otherwise only the server's sync point does (D7, D8).
    let countsClaim: Bool
    /// The highest known oplog id.
    private(set) var head: OplogID
    /// A page was requested and has not arrived.
    var isFetching = false
    /// The part of the channel that is a backlog, to which a threshold applies (D10).
    enum Backlog: Hashable, Sendable {
        /// No backlog: the session was open and eligible when the data came, or the first page of the backlog was
        /// handed out.
        case none
        /// The session is not eligible. The backlog will reach to the head at the moment when it becomes eligible.
        case waits
        /// The backlog reaches to the head at the opening. It stays the same when a page fails or unwritten batches are
        /// withdrawn.
        case open(upto: OplogID)
    }

    private(set) var backlog: Backlog
    /// Part of the opening backlog was not sent yet, so `CaughtUp` waits.
    var holdsCaughtUp: Bool
    /// Non-persistent entries above `sent`. They wait until the oplogs before them were read.
    private(set) var nonPersistent: [Oplog] = []
    /// The last non-persistent entries that were handed out. A repeat of such a push has the same id.
    private var sentNonPersistent: [OplogID] = []
    /// Recalled oplogs that were not written to the connection. An older page or notice can still contain them, and so
    /// can a waiting batch.
    private var recalled: Set<OplogID> = []
    /// The resend ladder of a simple device; nil: the client library has its own.
    var resends: BatchResends?
    /// Oplogs that a simple device has acknowledged and that were not reported yet.
    private var confirmed: [OplogID] = []
    /// Valid oplogs up to here were left out. The next batch tells the device; zero: none.
    private var leftOutUpto = OplogID.zero
    /// Payload bytes of unacknowledged batches, by the end of the batch.
    private var unacknowledged: [(upto: OplogID, bytes: Int)] = []
    /// Batches that were handed out and not written to the connection.
    private var unwritten: [Unwritten] = []

    /// The state of the cursor before a batch was handed out.
    private struct Unwritten {
        /// The end of the batch.
        var upto: OplogID
        let sent: OplogID
        let announced: OplogID
        let leftOutUpto: OplogID
        let backlog: Backlog
        /// The non-persistent entries of the batch, which cannot be read again.
        var nonPersistent: [Oplog] = []
        /// The ids of the batch's entries.
        var oplogs: [OplogID] = []
    }

    /// - Parameters:
    ///   - recorded: the sync point on the server.
    ///   - acknowledged: the highest position that this store acknowledged or reported before; zero: unknown. A store
    ///     that reports less is an older copy. Its own position counts (D7), and it receives the missing oplogs again.
    ///   - reported: the device's own position; nil: none for this channel.
    ///   - countsClaim: whether the reported position counts. Otherwise data above the sync point is sent again. The
    ///     device drops it as known, and its acknowledgement raises the sync point.
    ///   - isSimple: the device is simple. It had everything up to the sync point, so it receives tombstones up to
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
        // After a failover that lost commits, a device can be above the head. Its position is clamped, not refused.
        let known = min(own, head)
        let isOlderCopy = countsClaim && acknowledged > known
        sent = isOlderCopy ? known : min(countsClaim ? max(recorded, known) : recorded, head)
        announced = min(known, sent)
        stored = isOlderCopy ? known : recorded
        self.recorded = recorded
        self.acknowledged = max(acknowledged, countsClaim ? known : .zero)
        backlog = isOpening && sent < head ? .open(upto: head) : .none
        holdsCaughtUp = sent < head
        // No store of this device has the oplogs between: the store is new, or older than the sync point.
        leaveOut(upto: sent)
    }

    /// The highest position that the device has or that was written to it.
    var held: OplogID { max(unwritten.first?.announced ?? announced, claimed) }

    /// Whether the device needs the tombstone of a recalled oplog: it has the oplog, or the oplog waits to be written
    /// before the tombstone. `withdraw` removes both.
    private func needsTombstone(of id: OplogID) -> Bool {
        id <= held || unwritten.contains { $0.oplogs.contains(id) }
    }

    /// Whether there is data to read.
    var isBehind: Bool { sent < head }

    /// Raises the head; a lower value has no effect.
    mutating func raiseHead(to head: OplogID) {
        self.head = max(self.head, head)
    }

    /// Records that valid oplogs between the device's position and this id are left out.
    mutating func leaveOut(upto: OplogID) {
        if upto > announced { leftOutUpto = max(leftOutUpto, upto) }
    }

    /// The end of the part that the device acknowledged earlier and receives again in a batch after this position;
    /// zero: none.
    func againUpto(above after: OplogID) -> OplogID { acknowledged > after ? acknowledged : .zero }

    /// Records that the session is not eligible for the channel.
    mutating func suspendBacklog() { backlog = .waits }

    /// The head up to which a threshold counts for the next page; nil: the next page is not the first of a backlog.
    /// Call it only while the session is eligible.
    mutating func openBacklog() -> OplogID? {
        if backlog == .waits { backlog = .open(upto: head) }
        guard case .open(let upto) = backlog else { return nil }
        return upto
    }

    /// Records that the first page of the backlog was handed out.
    mutating func beganBacklog() { backlog = .none }

    /// The end of a page for this session: before the first entry whose notice has not arrived.
    ///
    /// - Parameter awaited: the non-persistent entries of the page, in order.
    func end(of upto: OplogID, awaiting awaited: [OplogID]) -> OplogID {
        let missing = awaited.first { id in id > sent && id <= upto && !nonPersistent.contains { $0.id == id } }
        return missing.map { OplogID($0.value - 1) } ?? upto
    }

    /// Records recalled oplogs before their tombstones arrive in order.
    mutating func addRecalls(_ ids: [OplogID]) {
        for id in ids {
            if id > writtenUpto { recalled.insert(id) }
            resends?.recalled(id)
        }
    }

    /// The position up to which no batch waits to be written.
    private var writtenUpto: OplogID { unwritten.first?.sent ?? sent }

    /// Whether an oplog was recalled before it was written.
    func isRecalled(_ id: OplogID) -> Bool { recalled.contains(id) }

    /// The part of a waiting batch that must still be written.
    ///
    /// - Returns: the batch; for a resend, without recalled entries; nil: the batch was withdrawn, or the device has
    ///   acknowledged the resend.
    func owed(_ batch: Mss_Device_V1_ChannelBatch) -> Mss_Device_V1_ChannelBatch? {
        let upto = OplogID(batch.upto)
        if upto > unwritten.first?.announced ?? announced {
            return unwritten.contains { $0.upto == upto } ? batch : nil
        }
        return resends?.owed(batch)
    }

    /// Maximum of waiting non-persistent entries. A session that is further behind misses the newest of them, like an
    /// offline device.
    private static let nonPersistentMax = 64

    /// Keeps non-persistent entries, which cannot be read later.
    mutating func bufferNonPersistent(_ entries: [Oplog]) {
        let new = entries.filter { entry in
            !entry.isPersistent && entry.id > sent && !nonPersistent.contains { $0.id == entry.id }
        }
        nonPersistent += new.prefix(max(0, Self.nonPersistentMax - nonPersistent.count))
    }

    /// Whether a non-persistent entry was handed out in this session or waits.
    func holdsNonPersistent(_ id: OplogID) -> Bool {
        sentNonPersistent.contains(id) || nonPersistent.contains { $0.id == id }
    }

    /// The result of handing out a batch.
    struct Taken {
        /// A batch on the wire.
        typealias Batch = (after: OplogID, upto: OplogID, entries: [Oplog], passedOverUpto: OplogID)

        /// In order; empty when nothing is sent.
        var batches: [Batch] = []
        var skipped: [SkipReason: [OplogID]] = [:]
    }

    /// Hands out a batch that continues the cursor: raises `sent` and returns the batches to send.
    ///
    /// - Parameters:
    ///   - discardedUpto: a threshold has left out valid oplogs up to here.
    ///   - filters: decide for each receiver. A tombstone goes to every device with its oplog.
    ///   - batchEntries: maximum of entries in one batch.
    mutating func accept(
        upto: OplogID, entries: [Oplog], discardedUpto: OplogID = .zero, device: DeviceTraits, now: WallTime,
        filters: FilterHistory? = nil, batchEntries: Int = .max
    ) -> Taken {
        let before = Unwritten(
            upto: upto, sent: sent, announced: announced, leftOutUpto: leftOutUpto, backlog: backlog)
        leaveOut(upto: discardedUpto)
        let waited = nonPersistent.filter { $0.id <= upto }
        nonPersistent.removeAll { $0.id <= upto }
        let all = waited.isEmpty ? entries : (entries + waited).sorted { $0.id < $1.id }
        var taken = Taken()
        var new: [Oplog] = []
        // A waiting entry or a resend may have been recalled: a tombstone in this batch can be the first sign.
        let recalledHere = all.compactMap(\.recalls)
        for id in recalledHere { resends?.recalled(id) }
        let dropped = recalled.union(recalledHere)
        for entry in all where entry.id > sent && !dropped.contains(entry.id) {
            if let reason = entry.skipReason(for: device, now: now) {
                taken.skipped[reason, default: []].append(entry.id)
            } else if entry.recalls == nil, filters?.flows(entry.id, attributes: entry.attributes) == false {
                // Filtered out. A changed parameter may let it through later, so it is not reported as skipped.
                continue
            } else if entry.recalls.map({ needsTombstone(of: $0) }) ?? true {
                // Only a device that has the original or will receive it gets a tombstone (H7).
                new.append(entry)
            }
        }
        sent = max(sent, upto)
        head = max(head, sent)
        if !new.isEmpty { makeBatches(of: new, before: before, batchEntries: batchEntries, in: &taken) }
        forgetWrittenRecalls()
        return taken
    }

    /// Makes batches that can be written and withdrawn separately.
    private mutating func makeBatches(of new: [Oplog], before: Unwritten, batchEntries: Int, in taken: inout Taken) {
        var (rest, before) = (new[...], before)
        while !rest.isEmpty {
            let entries = Array(rest.prefix(batchEntries))
            rest = rest.dropFirst(entries.count)
            let after = announced
            announced = rest.isEmpty ? max(announced, sent) : entries[entries.count - 1].id
            unacknowledged.append((announced, entries.reduce(0) { $0 + $1.payload.count }))
            (before.upto, before.nonPersistent) = (announced, entries.filter { !$0.isPersistent })
            before.oplogs = entries.map(\.id)
            if !before.nonPersistent.isEmpty {
                sentNonPersistent = (sentNonPersistent + before.nonPersistent.map(\.id)).suffix(Self.nonPersistentMax)
            }
            unwritten.append(before)
            taken.batches.append((after, announced, entries, leftOutUpto))
            leftOutUpto = .zero
            before = Unwritten(
                upto: announced, sent: announced, announced: announced, leftOutUpto: .zero, backlog: .none)
        }
    }

    private mutating func forgetWrittenRecalls() {
        if !recalled.isEmpty { recalled = recalled.filter { $0 > writtenUpto } }
    }

    /// Records that batches up to an id were written to the connection. They cannot be withdrawn any more.
    mutating func written(upto: OplogID, at now: ContinuousClock.Instant) {
        unwritten.removeAll { $0.upto <= upto }
        resends?.written(upto: upto, now: now)
        forgetWrittenRecalls()
    }

    /// Withdraws unwritten batches: the cursor returns to its position before them, and reads them again.
    ///
    /// - Returns: the freed bytes.
    mutating func withdraw() -> Int {
        guard let first = unwritten.first else { return 0 }
        let freed = unacknowledged.filter { $0.upto > first.announced }.reduce(0) { $0 + $1.bytes }
        unacknowledged.removeAll { $0.upto > first.announced }
        nonPersistent = unwritten.flatMap(\.nonPersistent) + nonPersistent
        sent = max(first.sent, stored)
        (announced, leftOutUpto, backlog) = (first.announced, first.leftOutUpto, first.backlog)
        sentNonPersistent.removeAll { $0 > sent }
        resends?.withdraw(after: announced)
        unwritten = []
        return freed
    }

    /// Raises `stored` to `sent` when no batch is in flight: the device then has everything that was sent, skipped or
    /// reported at connect (D12).
    mutating func raiseStored() {
        if unacknowledged.isEmpty { stored = max(stored, sent) }
    }

    /// Whether there is a stored position or an acknowledgement of a simple device to report.
    var owesReport: Bool { stored > recorded || !confirmed.isEmpty }

    /// Returns the unreported part and marks it as reported: the sync point to record, nil if it did not rise, and the
    /// oplogs that a simple device has acknowledged.
    mutating func dequeueReport() -> (upto: OplogID?, confirmed: [OplogID]) {
        defer { (recorded, confirmed) = (max(recorded, stored), []) }
        return (stored > recorded ? stored : nil, confirmed)
    }

    /// Takes over the state that no page contains from the former cursor of the same channel: recalls, non-persistent
    /// entries, batches in flight, and unreported acknowledgements of a simple device.
    ///
    /// - Parameter onRecord: the acknowledged position of the store, from the server.
    mutating func inherit(from former: ChannelCursor, acknowledged onRecord: OplogID) {
        recalled = former.recalled.filter { $0 > sent }
        confirmed = former.confirmed
        nonPersistent = (former.unwritten.flatMap(\.nonPersistent) + former.nonPersistent).filter { $0.id > sent }
        sentNonPersistent = former.sentNonPersistent.filter { id in !nonPersistent.contains { $0.id == id } }
        if backlog == .none { backlog = former.backlog }
        acknowledged = max(onRecord, former.acknowledged)
        // Where the server's sync point counts, everything above it is sent again.
        guard countsClaim else { return }
        // Written and not acknowledged: it counts as stored when the device acknowledges it.
        unacknowledged = former.unacknowledged.filter { $0.upto <= announced }
        resends = former.resends
        resends?.withdraw(after: announced)
    }

    /// Records the acknowledgement of a simple device: its app has the batches up to there.
    mutating func confirm(upto: OplogID, now: ContinuousClock.Instant) {
        confirmed += resends?.acknowledged(upto: upto, now: now) ?? []
    }

    /// Records the device's acknowledgement, clamped to the sent data. Skipped oplogs after it count as stored.
    ///
    /// - Returns: the freed bytes.
    mutating func acknowledge(upto: OplogID) -> Int {
        // Batches that wait to be written were not sent yet.
        let sent = unwritten.first?.announced ?? announced
        let upto = min(upto, sent)
        acknowledged = max(acknowledged, upto)
        var freed = 0
        while let first = unacknowledged.first, first.upto <= upto {
            freed += first.bytes
            unacknowledged.removeFirst()
        }
        raiseStored()
        stored = max(stored, upto)
        return freed
    }

    /// Unacknowledged payload bytes.
    var unacknowledgedBytes: Int { unacknowledged.reduce(0) { $0 + $1.bytes } }
}
