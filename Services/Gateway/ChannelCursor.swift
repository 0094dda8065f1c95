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
    /// Oplogs above `sent` that were recalled: a page or notice from before the recall may still bring them.
    private var recalled: Set<OplogID> = []
    /// Of a simple device; nil: the device's library has a ladder of its own.
    var resends: BatchResends?
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
    }

    /// - Parameters:
    ///   - recorded: the sync point on the server.
    ///   - reported: the device's own, nil when it has none for this channel.
    ///   - isOpening: the session opens with this head; otherwise it was open when the channel's oplogs came.
    init(channelID: Int64, head: OplogID, recorded: OplogID, reported: OplogID?, isOpening: Bool = true) {
        self.channelID = channelID
        self.head = head
        // A device can be above the head after a failover that lost commits; it is clamped, never refused.
        sent = min(max(recorded, reported ?? .zero), head)
        announced = min(reported ?? .zero, head)
        stored = recorded
        #if KNOWN_BAD
            if KnownBad.openingFromHead.isOn { sent = head }
        #endif
        backlog = isOpening && sent < head ? .open(upto: head) : .none
        holdsCaughtUp = sent < head
        // What lies between is on no store of this device: the store is new, or older than the record.
        passOver(upto: sent)
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

    /// Notes what tombstones say, before they come in order.
    mutating func learnRecalls(of entries: [Oplog]) {
        for case let id? in entries.map(\.recalls) {
            if id > sent { recalled.insert(id) } else { resends?.recalled(id) }
        }
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
        /// Nil when nothing goes out.
        var batch: (after: OplogID, upto: OplogID, entries: [Oplog], passedOverUpto: OplogID)?
        var skipped: [SkipReason: [OplogID]] = [:]
    }

    /// Takes a batch that applies: the position moves, and what is new comes back with its place on the wire.
    ///
    /// - Parameters:
    ///   - discardedUpto: a threshold has left out valid oplogs up to here.
    ///   - filters: what decides for whom an entry is; a tombstone is for everybody who has its oplog.
    mutating func take(
        upto: OplogID, entries: [Oplog], discardedUpto: OplogID = .zero, device: DeviceTraits, now: WallTime,
        filters: FilterHistory? = nil
    ) -> Taken {
        var before = Unwritten(
            upto: upto, sent: sent, announced: announced, passedOver: passedOver, backlog: backlog)
        passOver(upto: discardedUpto)
        let waited = live.filter { $0.id <= upto }
        live.removeAll { $0.id <= upto }
        let all = waited.isEmpty ? entries : (entries + waited).sorted { $0.id < $1.id }
        var taken = Taken()
        var new: [Oplog] = []
        for entry in all where entry.id > sent && !recalled.contains(entry.id) {
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
            } else if entry.recalls.map({ $0 <= announced }) ?? true {
                // Of a tombstone: only a device that was sent the original learns that it is gone (spec H7).
                new.append(entry)
            }
        }
        sent = max(sent, upto)
        head = max(head, sent)
        if !recalled.isEmpty { recalled = recalled.filter { $0 > sent } }
        guard !new.isEmpty else { return taken }
        let after = announced
        announced = max(announced, sent)
        let bytes = new.reduce(0) { $0 + $1.payload.count }
        unacknowledged.append((announced, bytes))
        (before.upto, before.live) = (announced, new.filter { !$0.isPersistent })
        unwritten.append(before)
        if !before.live.isEmpty { handedLive = (handedLive + before.live.map(\.id)).suffix(Self.liveMax) }
        taken.batch = (after, announced, new, passedOver)
        passedOver = .zero
        return taken
    }

    /// A batch has been written to the connection: it cannot be taken back any more.
    mutating func written(upto: OplogID) { unwritten.removeAll { $0.upto <= upto } }

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

    /// The sync point to record, nil when it has not risen: with nothing under way to the device, all that was sent or
    /// skipped, and what the device said it has when it connected (spec D12).
    mutating func settle() -> OplogID? {
        #if KNOWN_BAD
            if KnownBad.settlesUnderWay.isOn, sent > stored {
                stored = sent
                return sent
            }
        #endif
        guard unacknowledged.isEmpty, sent > stored else { return nil }
        stored = sent
        return sent
    }

    /// Takes the device's acknowledgement, clamped to what it was sent; what was skipped behind it counts as stored.
    ///
    /// - Returns: the sync point to record, nil when it did not rise, and the bytes that are free again.
    mutating func acknowledge(upto: OplogID) -> (record: OplogID?, freedBytes: Int) {
        // What waits to be written was not sent yet.
        let sent = unwritten.first?.announced ?? announced
        #if KNOWN_BAD
            let upto = KnownBad.ackUnclamped.isOn ? upto : min(upto, sent)
        #else
            let upto = min(upto, sent)
        #endif
        var freed = 0
        while let first = unacknowledged.first, first.upto <= upto {
            freed += first.bytes
            unacknowledged.removeFirst()
        }
        if let settled = settle() { return (settled, freed) }
        guard upto > stored else { return (nil, freed) }
        stored = upto
        return (upto, freed)
    }

    /// Bytes sent and not yet stored.
    var unacknowledgedBytes: Int { unacknowledged.reduce(0) { $0 + $1.bytes } }
}
