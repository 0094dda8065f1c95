import SyncModel

/// What one device has asked for and was not answered yet; pure.
struct SessionRequests {
    /// More are answered at once, with "try again" (DeviceProtocol.md, Limits).
    static let unansweredMax = 4

    /// One question on its way to the store.
    struct Request {
        /// One of the channels that it is about.
        typealias Channel = (key: SessionStateMachine.ChannelKey, channelID: Int64)

        /// The device's own number of it.
        let number: UInt32
        let bindNumber: UInt32
        let channels: [Channel]
        /// Of a summary: there are channels behind these.
        let hasMore: Bool
        /// What was recalled since it was asked: the answer may be older.
        fileprivate var recalled: [Int64: Set<OplogID>] = [:]

        init(number: UInt32, bindNumber: UInt32, channels: [Channel], hasMore: Bool = false) {
            self.number = number
            self.bindNumber = bindNumber
            self.channels = channels
            self.hasMore = hasMore
        }

        /// Whether an oplog of the answer may go out: not after its recall, and by the rules of every hand-out.
        func allows(_ oplog: Oplog, of channelID: Int64, for device: DeviceTraits, now: WallTime) -> Bool {
            recalled[channelID]?.contains(oplog.id) != true && oplog.skipReason(for: device, now: now) == nil
        }
    }

    private var unanswered: [UInt64: Request] = [:]
    private var lastID: UInt64 = 0

    /// Takes a request; nil: too many wait for their answers.
    mutating func open(_ request: Request) -> UInt64? {
        guard unanswered.count < Self.unansweredMax else { return nil }
        lastID += 1
        unanswered[lastID] = request
        return lastID
    }

    /// A request that is not answered yet.
    subscript(id: UInt64) -> Request? { unanswered[id] }

    /// The device gets its answer.
    mutating func close(_ id: UInt64) { unanswered[id] = nil }

    /// A tombstone: what it names is in no answer any more.
    mutating func recall(_ id: OplogID, channelID: Int64) {
        for key in unanswered.keys { unanswered[key]?.recalled[channelID, default: []].insert(id) }
    }
}
