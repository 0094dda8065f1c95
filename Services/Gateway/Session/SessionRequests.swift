import SyncModel

/// The requests of a device for history and summaries that are not answered yet; pure.
struct SessionRequests {
    /// Maximum of unanswered requests. Further ones are answered at once with `tryAgain` (DeviceProtocol.md, Limits).
    static let unansweredMax = 4

    /// A request in flight to the store.
    struct Request {
        /// A channel of the request.
        typealias Channel = (key: ChannelKey, channelID: Int64)

        /// The device's number of the request.
        let number: UInt32
        let bindNumber: UInt32
        let channels: [Channel]
        /// For a summary: more channels follow on the next page.
        let hasMore: Bool
        /// A summary of the conversations of the one channel.
        let isOfConversations: Bool
        /// Oplogs that were recalled after the request was sent. The reply may still contain them.
        fileprivate var recalled: [Int64: Set<OplogID>] = [:]

        init(
            number: UInt32, bindNumber: UInt32, channels: [Channel], hasMore: Bool = false,
            isOfConversations: Bool = false
        ) {
            self.number = number
            self.bindNumber = bindNumber
            self.channels = channels
            self.hasMore = hasMore
            self.isOfConversations = isOfConversations
        }

        /// Whether an oplog of the reply may be sent: it was not recalled, and it is not skipped by the rules.
        func allows(_ oplog: Oplog, of channelID: Int64, for device: DeviceTraits, now: WallTime) -> Bool {
            recalled[channelID]?.contains(oplog.id) != true && oplog.skipReason(for: device, now: now) == nil
        }
    }

    private var unanswered: [UInt64: Request] = [:]
    private var lastID: UInt64 = 0

    /// Adds a request; nil: too many are unanswered.
    mutating func open(_ request: Request) -> UInt64? {
        guard unanswered.count < Self.unansweredMax else { return nil }
        lastID += 1
        unanswered[lastID] = request
        return lastID
    }

    /// An unanswered request.
    subscript(id: UInt64) -> Request? { unanswered[id] }

    /// Removes a request, because it is answered.
    mutating func close(_ id: UInt64) { unanswered[id] = nil }

    /// Records a recall, so that no answer contains the oplog.
    mutating func recall(_ id: OplogID, channelID: Int64) {
        for key in unanswered.keys { unanswered[key]?.recalled[channelID, default: []].insert(id) }
    }
}
