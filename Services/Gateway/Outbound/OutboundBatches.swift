import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The batches of one connection from their hand-out until the socket has accepted them; pure. It is their only owner.
///
/// A batch waits for other batches of the same frame (D5), or for free capacity of the connection. The rules are
/// checked again for waiting batches, but not for bytes in the socket.
struct OutboundBatches {
    /// Maximum time that batches wait for pages of other channels. The limit is checked with the next event.
    private static let gathering = Duration.milliseconds(300)
    /// The time for which a check of the rules counts. More time passes in a turn only when the process was paused.
    private static let checkLifetime = Duration.milliseconds(10)

    /// Batches that wait to be written, in order.
    private(set) var waiting: [OutboundBatch] = []
    /// Another event occurred after the batches began to wait, so the rules must be checked again.
    private var hasWaited = false
    private var waitingBytes = 0
    /// The instant when the oldest batch began to wait.
    private var waitingSince: ContinuousClock.Instant?
    /// A `CaughtUp` frame that must follow the waiting batches.
    private var waitingCaughtUp: Mss_Device_V1_Packet?
    /// The batches in frames that were not passed to the socket yet.
    private var encoded: [OutboundBatch] = []
    /// The batches of each write that the socket has not completely accepted yet.
    private var unflushed: [[OutboundBatch]] = []

    var isEmpty: Bool { waiting.isEmpty }

    /// Whether batches wait here or in the socket. It is mutating, because otherwise all fields would be copied.
    var areOnTheirWay: Bool { mutating get { !waiting.isEmpty || hasUnflushed } }

    // MARK: Waiting

    /// Whether a frame with the waiting batches has no capacity for this one.
    func isFull(for batch: OutboundBatch) -> Bool {
        !waiting.isEmpty && waitingBytes + batch.bytes > DeviceProtocolLimits.pushFrameBytes
    }

    /// Adds a batch that was handed out.
    mutating func append(_ batch: OutboundBatch, at now: ContinuousClock.Instant) {
        waiting.append(batch)
        waitingBytes += batch.bytes
        waitingSince = waitingSince ?? now
    }

    /// Records that an event begins, or that the turn ends: waiting batches are older than it.
    mutating func age() { hasWaited = !waiting.isEmpty }

    /// Whether the rules must be checked again before the waiting batches are written.
    func needRecheck(at now: ContinuousClock.Instant) -> Bool {
        hasWaited || waitingSince.map { $0.duration(to: now) > Self.checkLifetime } ?? false
    }

    /// Replaces the waiting batches with those that the rules still allow.
    mutating func recheck(_ allowed: [OutboundBatch]) {
        hasWaited = false
        keep(allowed)
    }

    /// Drops the waiting batches, because the connection closes.
    mutating func removeWaiting() {
        keep([])
        waitingCaughtUp = nil
    }

    private mutating func keep(_ batches: [OutboundBatch]) {
        waiting = batches
        waitingBytes = batches.reduce(0) { $0 + $1.bytes }
        if batches.isEmpty { waitingSince = nil }
    }

    /// Whether the batches may wait for pages of other channels.
    func mayGather(at now: ContinuousClock.Instant) -> Bool {
        waitingSince.map { $0.duration(to: now) < Self.gathering } ?? false
    }

    /// Keeps a `CaughtUp` frame until the waiting batches are written.
    ///
    /// - Returns: false: no batch waits, so the frame can be written now.
    mutating func holdCaughtUp(_ packet: Mss_Device_V1_Packet) -> Bool {
        guard case .caughtUp? = packet.body, !waiting.isEmpty else { return false }
        waitingCaughtUp = packet
        return true
    }

    /// Removes and returns the `CaughtUp` frame that can be written now; nil: none. One of another bind is dropped.
    mutating func dequeueCaughtUp(bind: @autoclosure () -> UInt32?) -> Mss_Device_V1_Packet? {
        guard waiting.isEmpty, let packet = waitingCaughtUp else { return nil }
        waitingCaughtUp = nil
        return packet.caughtUp.bindNumber == bind() ? packet : nil
    }

    // MARK: Frames

    /// Removes and returns the batches of the next push frame, in order. Batches of another bind are dropped.
    ///
    /// - Parameters:
    ///   - room: the free capacity of the connection, in entries.
    ///   - accepted: the Sync IDs that the client accepts; nil: all.
    mutating func dequeueFrame(room: Int, bind: UInt32, accepted: Set<String>?) -> [OutboundBatch] {
        var (ready, rest, entries, bytes) = ([OutboundBatch](), [OutboundBatch](), 0, 0)
        for item in waiting where item.isOf(bind: bind) {
            guard accepted?.contains(item.batch.bizType) ?? true else {
                rest.append(item)
                continue
            }
            // After the first batch that does not fit, no later batch is taken, so the order within a channel stays.
            (entries, bytes) = (entries + item.batch.entries.count, bytes + item.bytes)
            let fits = entries <= room && (ready.isEmpty || bytes <= DeviceProtocolLimits.pushFrameBytes)
            if fits { ready.append(item) } else { rest.append(item) }
        }
        keep(rest)
        encoded += ready
        return ready
    }

    // MARK: Socket

    /// Records that the encoded frames are passed to the socket.
    ///
    /// - Returns: whether they contain batches. Then the caller calls `recordFlush` when the socket has accepted them.
    mutating func beginFlush() -> Bool {
        guard !encoded.isEmpty else { return false }
        unflushed.append(encoded)
        encoded = []
        return true
    }

    /// Records that the socket has accepted the oldest write with batches.
    mutating func recordFlush() { unflushed.removeFirst() }

    /// Whether written batches have not left the gateway.
    var hasUnflushed: Bool { !unflushed.isEmpty || !encoded.isEmpty }

    /// Whether an encoded batch has the property.
    func hasEncoded(where isSuch: (OutboundBatch) -> Bool) -> Bool { encoded.contains(where: isSuch) }

    /// Whether a batch in the socket has the property. Only closing the connection discards it.
    func holdsInSocket(where isSuch: (OutboundBatch) -> Bool) -> Bool { unflushed.joined().contains(where: isSuch) }
}
