import DeviceProtocol
import SyncModel

/// The position of one session in one channel; pure.
///
/// Positions only rise: `stored ≤ announced ≤ sent ≤ head`.
struct ChannelCursor {
    let channelID: Int64
    /// The position that the device reported at bind, or the position of the cursor before this one. A simple device
    /// need not report a position, so for it the server's sync point counts too.
    private let claimed: OplogID
    /// Whether the reported position counts; otherwise only the server's sync point does (D7, D8).
    let countsClaim: Bool
    /// The highest known oplog id.
    private(set) var head: OplogID
    /// A page was requested and has not arrived.
    var isFetching = false
    /// Part of the opening backlog was not sent yet, so `CaughtUp` waits.
    var holdsCaughtUp: Bool
    private var position: SendPosition
    private var progress: DeviceProgress
    private var inFlight = BatchesInFlight()
    private var nonPersistent = NonPersistentEntries()
    /// Recalled oplogs that were not written to the connection. An older page or notice can still contain them, and so
    /// can a waiting batch.
    private var recalled: Set<OplogID> = []
    /// The resend ladder of a simple device; nil: the client library has its own.
    var resends: BatchResends?

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
        let start = isOlderCopy ? known : min(countsClaim ? max(recorded, known) : recorded, head)
        // No store of this device has the oplogs between: the store is new, or older than the sync point.
        position = SendPosition(
            sent: start, announced: min(known, start), backlog: isOpening && start < head ? .open(upto: head) : .none)
        progress = DeviceProgress(
            stored: isOlderCopy ? known : recorded, acknowledged: max(acknowledged, countsClaim ? known : .zero),
            recorded: recorded)
        holdsCaughtUp = position.sent < head
    }

    /// Every oplog up to here was sent to the device, or skipped for good.
    var sent: OplogID { position.sent }

    /// The position that the device has after the batches sent so far: the `after` of the next batch.
    var announced: OplogID { position.announced }

    /// The device has stored everything up to here.
    var stored: OplogID { progress.stored }

    /// The part of `stored` that the device itself acknowledged or reported. `stored` also counts skipped and discarded
    /// oplogs.
    var acknowledged: OplogID { progress.acknowledged }

    /// The highest position that the device has or that was written to it.
    var held: OplogID { max(writtenPosition.announced, claimed) }

    /// The position up to which no batch waits to be written.
    private var writtenPosition: SendPosition { inFlight.writtenPosition ?? position }

    /// Whether the device needs the tombstone of a recalled oplog: it has the oplog, or the oplog waits to be written
    /// before the tombstone. `withdraw` removes both.
    private func needsTombstone(of id: OplogID) -> Bool {
        id <= held || inFlight.hasUnwritten(id)
    }

    /// Whether there is data to read.
    var isBehind: Bool { sent < head }

    /// Raises the head; a lower value has no effect.
    mutating func raiseHead(to head: OplogID) {
        self.head = max(self.head, head)
    }

    /// The end of the part that the device acknowledged earlier and receives again in a batch after this position;
    /// zero: none.
    func againUpto(above after: OplogID) -> OplogID { acknowledged > after ? acknowledged : .zero }

    /// Records that the session is not eligible for the channel.
    mutating func suspendBacklog() { position.suspendBacklog() }

    /// The head up to which a threshold counts for the next page; nil: the next page is not the first of a backlog.
    /// Call it only while the session is eligible.
    mutating func openBacklog() -> OplogID? { position.openBacklog(head: head) }

    /// Records that the first page of the backlog was handed out.
    mutating func beganBacklog() { position.beganBacklog() }

    /// The end of a page for this session: before the first entry whose notice has not arrived.
    ///
    /// - Parameter awaited: the non-persistent entries of the page, in order.
    func end(of upto: OplogID, awaiting awaited: [OplogID]) -> OplogID {
        let missing = awaited.first { id in id > sent && id <= upto && !nonPersistent.isWaiting(id) }
        return missing.map { OplogID($0.value - 1) } ?? upto
    }

    /// Records recalled oplogs before their tombstones arrive in order.
    mutating func addRecalls(_ ids: [OplogID]) {
        for id in ids {
            if id > writtenPosition.sent { recalled.insert(id) }
            resends?.recalled(id)
        }
    }

    /// Whether an oplog was recalled before it was written.
    func isRecalled(_ id: OplogID) -> Bool { recalled.contains(id) }

    /// The part of a waiting batch that must still be written.
    ///
    /// - Returns: the batch; for a resend, without recalled entries; nil: the batch was withdrawn, or the device has
    ///   acknowledged the resend.
    func owed(_ batch: Mss_Device_V1_ChannelBatch) -> Mss_Device_V1_ChannelBatch? {
        let upto = OplogID(batch.upto)
        if upto > writtenPosition.announced {
            return inFlight.hasUnwrittenBatch(upto: upto) ? batch : nil
        }
        return resends?.owed(batch)
    }

    /// Keeps the non-persistent ones of a notice's entries, because they cannot be read later.
    mutating func bufferNonPersistent(_ entries: [Oplog]) { nonPersistent.buffer(entries, above: sent) }

    /// Whether a non-persistent entry was handed out in this session or waits.
    func holdsNonPersistent(_ id: OplogID) -> Bool { nonPersistent.holds(id) }

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
        let before = position
        position.leaveOut(upto: discardedUpto)
        let waited = nonPersistent.dequeue(upto: upto)
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
        position.raiseSent(to: upto)
        head = max(head, sent)
        if !new.isEmpty { makeBatches(of: new, before: before, batchEntries: batchEntries, in: &taken) }
        forgetWrittenRecalls()
        return taken
    }

    /// Makes batches that can be written and withdrawn separately.
    private mutating func makeBatches(
        of new: [Oplog], before: SendPosition, batchEntries: Int, in taken: inout Taken
    ) {
        var (rest, before) = (new[...], before)
        while !rest.isEmpty {
            let entries = Array(rest.prefix(batchEntries))
            rest = rest.dropFirst(entries.count)
            let upto = rest.isEmpty ? max(announced, sent) : entries[entries.count - 1].id
            taken.batches.append((announced, upto, entries, position.leftOutUpto))
            position.announce(upto: upto)
            let nonPersistentEntries = entries.filter { !$0.isPersistent }
            nonPersistent.addHandedOut(nonPersistentEntries)
            inFlight.add(entries, upto: upto, nonPersistent: nonPersistentEntries, after: before)
            before = SendPosition(sent: upto, announced: upto)
        }
    }

    private mutating func forgetWrittenRecalls() {
        if !recalled.isEmpty { recalled = recalled.filter { $0 > writtenPosition.sent } }
    }

    /// Records that batches up to an id were written to the connection. They cannot be withdrawn any more.
    mutating func written(upto: OplogID, at now: ContinuousClock.Instant) {
        inFlight.written(upto: upto)
        resends?.written(upto: upto, now: now)
        forgetWrittenRecalls()
    }

    /// Withdraws unwritten batches: the cursor returns to its position before them, and reads them again.
    ///
    /// - Returns: the freed bytes.
    mutating func withdraw() -> Int {
        guard let withdrawn = inFlight.withdraw() else { return 0 }
        position = withdrawn.position
        position.raiseSent(to: stored)
        nonPersistent.withdraw(withdrawn.nonPersistent, above: sent)
        resends?.withdraw(after: position.announced)
        return withdrawn.bytes
    }

    /// Raises `stored` to `sent` when no batch is in flight: the device then has everything that was sent, skipped or
    /// reported at connect (D12).
    mutating func raiseStored() {
        if inFlight.isEmpty { progress.raiseStored(to: sent) }
    }

    /// Whether there is a stored position or an acknowledgement of a simple device to report.
    var owesReport: Bool { progress.owesReport }

    /// Returns the unreported part and marks it as reported: the sync point to record, nil if it did not rise, and the
    /// oplogs that a simple device has acknowledged.
    mutating func dequeueReport() -> (upto: OplogID?, confirmed: [OplogID]) { progress.dequeueReport() }

    /// Takes over the state that no page contains from the former cursor of the same channel: recalls, non-persistent
    /// entries, batches in flight, and unreported acknowledgements of a simple device.
    ///
    /// - Parameter onRecord: the acknowledged position of the store, from the server.
    mutating func inherit(from former: ChannelCursor, acknowledged onRecord: OplogID) {
        recalled = former.recalled.filter { $0 > sent }
        progress.inherit(from: former.progress, acknowledged: onRecord)
        nonPersistent.inherit(
            from: former.nonPersistent, unwritten: former.inFlight.unwrittenNonPersistent, above: sent)
        position.inheritBacklog(from: former.position)
        // Where the server's sync point counts, everything above it is sent again.
        guard countsClaim else { return }
        inFlight.inherit(from: former.inFlight, upto: announced)
        resends = former.resends
        resends?.withdraw(after: position.announced)
    }

    /// Records the acknowledgement of a simple device: its app has the batches up to there.
    mutating func confirm(upto: OplogID, now: ContinuousClock.Instant) {
        progress.confirm(resends?.acknowledged(upto: upto, now: now) ?? [])
    }

    /// Records the device's acknowledgement, clamped to the sent data. Skipped oplogs after it count as stored.
    ///
    /// - Returns: the freed bytes.
    mutating func acknowledge(upto: OplogID) -> Int {
        // Batches that wait to be written were not sent yet.
        let upto = min(upto, writtenPosition.announced)
        let freed = inFlight.acknowledge(upto: upto)
        raiseStored()
        progress.acknowledge(upto: upto)
        return freed
    }

    /// Unacknowledged payload bytes.
    var unacknowledgedBytes: Int { inFlight.bytes }
}
