/// What became of every push of a run, in twelve bytes each: whether it was stored, and which of its devices have it. A
/// push that is lost, doubled, or comes to another device, does not stay hidden.
struct PushBook: Sendable {
    /// Each has a bit.
    static let devicesPerUserMax = UInt32.bitWidth
    /// Pushes to everybody in a run.
    static let globalsMax = 1_000
    /// Numbers of pushes to everybody begin here, so that every process of a run knows them.
    static let firstGlobal = 4_000_000_000

    /// What an event ended.
    enum Outcome: Hashable, Sendable {
        /// Nothing: more is to come, or it was no proper delivery.
        case open
        /// The push was answered, and every device that is due has it, or it was not stored. Said once of a push.
        case settled(stream: Int)
    }

    /// What must not happen, and how often it did.
    struct Faults: Hashable, Sendable, Codable {
        /// A device got a push a second time.
        var duplicated = 0
        /// A device got an oplog whose id is not above that of the one before in the channel.
        var outOfOrder = 0
        /// A device got what was not for it, or what was never pushed.
        var strangers = 0
        /// A batch began above what the device has.
        var gaps = 0

        var isEmpty: Bool { self == Faults() }
    }

    private enum Answer: UInt8 { case open, stored, unknown }

    private struct Entry {
        var user: UInt32 = 0
        /// A bit for each device of the user.
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

    /// Entries of a chunk: growing by chunks never copies what is there.
    private static let chunk = 1 << 16

    let users: Int
    let devicesPerUser: Int
    private let full: UInt32
    private var chunks: [[Entry]] = []
    private var globals: [Global]
    /// Pushes to users so far.
    private(set) var count = 0
    /// Deliveries of stored pushes that are still to come; a push that was not answered yet counts nothing.
    private(set) var missing = 0
    /// Deliveries to devices, each push once a device.
    private(set) var deliveries = 0
    private(set) var faults = Faults()

    /// - Parameter globals: pushes to everybody that the run has.
    init(users: Int, devicesPerUser: Int, globals: Int) {
        self.users = users
        self.devicesPerUser = devicesPerUser
        full = UInt32(truncatingIfNeeded: (1 << devicesPerUser) - 1)
        let devices = users * devicesPerUser
        self.globals = (0..<globals).map { _ in
            Global(delivered: Array(repeating: 0, count: (devices + 63) / 64), missing: devices)
        }
    }

    /// Notes a push that goes out now, and numbers it.
    mutating func open(user: Int, stream: Int) -> Int {
        if count % Self.chunk == 0 { chunks.append(Array(repeating: Entry(), count: Self.chunk)) }
        let place = count % Self.chunk
        chunks[chunks.count - 1][place].user = UInt32(user)
        chunks[chunks.count - 1][place].stream = UInt8(truncatingIfNeeded: stream)
        count += 1
        return count - 1
    }

    /// Notes of a push to everybody which stream it is of.
    mutating func openGlobal(_ index: Int, stream: Int) -> Int {
        globals[index].stream = stream
        return Self.firstGlobal + index
    }

    /// A push was answered; of one that was not stored for certain every delivery is allowed and none is due.
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

    /// A device got a push.
    ///
    /// - Returns: the stream it is of; nil when it should not have got it, which is counted.
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

    /// A device got something that no push of the run carries.
    mutating func foundStranger() { faults.strangers += 1 }

    /// A device got an oplog below one that it had.
    mutating func foundDisorder() { faults.outOfOrder += 1 }

    /// A batch began above what the device has.
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
