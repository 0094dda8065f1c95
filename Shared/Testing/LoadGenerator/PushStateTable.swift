/// The state of every push of a run, in twelve bytes each: whether it was stored, and which of its devices received it.
/// So every lost, duplicated or misdirected push is found.
struct PushStateTable: Sendable {
    /// Each device has one bit.
    static let devicesPerUserMax = UInt32.bitWidth
    /// Most global pushes of a run.
    static let globalsMax = 1_000
    /// First number of global pushes, equal for all processes of a run.
    static let firstGlobal = 4_000_000_000

    /// The effect of an event on a push.
    enum Outcome: Hashable, Sendable {
        /// The push is not complete, or the delivery was a fault.
        case open
        /// The push was answered and every device has it, or it was not stored. Returned once per push.
        case settled(stream: Int)
    }

    /// Number of faults by kind.
    struct Faults: Hashable, Sendable, Codable {
        /// A device received a push twice.
        var duplicated = 0
        /// A device received an oplog whose id is not above the previous one of the channel.
        var outOfOrder = 0
        /// A device received data that is not for it or was never pushed.
        var strangers = 0
        /// A batch began above the device's position.
        var gaps = 0

        var isEmpty: Bool { self == Faults() }
    }

    private enum Answer: UInt8 { case open, stored, unknown }

    private struct Entry {
        var user: UInt32 = 0
        /// One bit for each device of the user.
        var delivered: UInt32 = 0
        var answer = Answer.open
        var stream: UInt8 = 0
    }

    private struct Global {
        var delivered: [UInt64]
        var answer = Answer.open
        var stream = 0
        var missing: Int
    }

    /// Entries per chunk. Growth by chunks copies no entries.
    private static let chunk = 1 << 16

    let users: Int
    let devicesPerUser: Int
    private let full: UInt32
    private var chunks: [[Entry]] = []
    private var globals: [Global]
    /// Number of pushes to users.
    private(set) var count = 0
    /// Number of missing deliveries of stored pushes. Pushes without a response do not count.
    private(set) var missing = 0
    /// Number of deliveries, each push once per device.
    private(set) var deliveries = 0
    private(set) var faults = Faults()

    /// - Parameter globals: number of global pushes of the run.
    init(users: Int, devicesPerUser: Int, globals: Int) {
        self.users = users
        self.devicesPerUser = devicesPerUser
        full = UInt32(truncatingIfNeeded: (1 << devicesPerUser) - 1)
        let devices = users * devicesPerUser
        self.globals = (0..<globals).map { _ in
            Global(delivered: Array(repeating: 0, count: (devices + 63) / 64), missing: devices)
        }
    }

    /// Records a push that is about to be sent, and returns its number.
    mutating func open(user: Int, stream: Int) -> Int {
        if count % Self.chunk == 0 { chunks.append(Array(repeating: Entry(), count: Self.chunk)) }
        let place = count % Self.chunk
        chunks[chunks.count - 1][place].user = UInt32(user)
        chunks[chunks.count - 1][place].stream = UInt8(truncatingIfNeeded: stream)
        count += 1
        return count - 1
    }

    /// Records the stream of a global push, and returns its number.
    mutating func openGlobal(_ index: Int, stream: Int) -> Int {
        globals[index].stream = stream
        return Self.firstGlobal + index
    }

    /// Records the response to a push. After a failed or uncertain call every delivery is permitted and none is
    /// expected.
    mutating func answered(_ push: Int, isStored: Bool) -> Outcome {
        if push >= Self.firstGlobal {
            let index = push - Self.firstGlobal
            globals[index].answer = isStored ? .stored : .unknown
            if isStored { missing += globals[index].missing }
            return !isStored || globals[index].missing == 0 ? .settled(stream: globals[index].stream) : .open
        }
        let (chunk, place) = (push / Self.chunk, push % Self.chunk)
        chunks[chunk][place].answer = isStored ? .stored : .unknown
        let entry = chunks[chunk][place]
        if isStored { missing += devicesPerUser - entry.delivered.nonzeroBitCount }
        return !isStored || entry.delivered == full ? .settled(stream: Int(entry.stream)) : .open
    }

    /// Records a delivery.
    ///
    /// - Returns: the stream of the push. The value is nil for a fault, which is counted.
    mutating func delivered(_ push: Int, to device: Int) -> (stream: Int, outcome: Outcome)? {
        if push >= Self.firstGlobal { return deliveredGlobal(push - Self.firstGlobal, to: device) }
        guard push < count else { return stranger() }
        let (chunk, place) = (push / Self.chunk, push % Self.chunk)
        let entry = chunks[chunk][place]
        guard Int(entry.user) == device / devicesPerUser else { return stranger() }
        let bit = UInt32(1) << UInt32(device % devicesPerUser)
        guard entry.delivered & bit == 0 else {
            faults.duplicated += 1
            return nil
        }
        chunks[chunk][place].delivered |= bit
        deliveries += 1
        let stream = Int(entry.stream)
        guard entry.answer == .stored else { return (stream, .open) }
        missing -= 1
        return (stream, entry.delivered | bit == full ? .settled(stream: stream) : .open)
    }

    /// Records data that no push of the run carries.
    mutating func foundStranger() { faults.strangers += 1 }

    /// Records an oplog id that is not above the last one.
    mutating func foundDisorder() { faults.outOfOrder += 1 }

    /// Records a batch that begins above the device's position.
    mutating func foundGap() { faults.gaps += 1 }

    private mutating func deliveredGlobal(_ index: Int, to device: Int) -> (stream: Int, outcome: Outcome)? {
        guard globals.indices.contains(index), device < users * devicesPerUser else { return stranger() }
        let bit = UInt64(1) << UInt64(device % 64)
        guard globals[index].delivered[device / 64] & bit == 0 else {
            faults.duplicated += 1
            return nil
        }
        globals[index].delivered[device / 64] |= bit
        globals[index].missing -= 1
        deliveries += 1
        let stream = globals[index].stream
        guard globals[index].answer == .stored else { return (stream, .open) }
        missing -= 1
        return (stream, globals[index].missing == 0 ? .settled(stream: stream) : .open)
    }

    private mutating func stranger() -> (stream: Int, outcome: Outcome)? {
        faults.strangers += 1
        return nil
    }
}
