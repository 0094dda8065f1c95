import BusMessages
import Metrics
import ServiceKit
import SyncModel
import Synchronization

/// The caches of the global channels that sessions of this gateway read. One read of the store serves all waiting
/// sessions.
final class GlobalChannelCaches: Sendable {
    /// Receives a page; nil: the session must ask the store itself.
    typealias Answer = @Sendable (Mss_Bus_V1_FetchReply?) -> Void
    /// Reads a page of a channel for any device: above a position, or the `newest` entries.
    typealias Read =
        @Sendable (
            _ channelID: Int64, _ after: OplogID, _ newest: Int,
            _ answer: @escaping @Sendable (Mss_Bus_V1_FetchReply?) -> Void
        ) -> Void

    private struct Channel {
        var tail: GlobalChannelCache?
        var isReading = false
        var waiting: [(request: PageRequest, answer: Answer)] = []
        /// Oplogs that were recalled during the current read. Its page may still contain them.
        var recalled: Set<OplogID> = []
    }

    private struct State {
        var channels: [Int64: Channel] = [:]
        /// Rises when the caches are emptied. A page that was requested earlier is then dropped.
        var generation = 0
    }

    private let state = Mutex(State())
    private let time: @Sendable () -> WallTime
    private let read: Read
    private let served = Counter(label: "mss_gateway_global_pages", dimensions: [("from", "memory")])
    private let passedOn = Counter(label: "mss_gateway_global_pages", dimensions: [("from", "store")])

    /// - Parameter time: the database time.
    init(time: @escaping @Sendable () -> WallTime, read: @escaping Read) {
        self.time = time
        self.read = read
    }

    /// The immediate outcome of a request.
    private enum Outcome {
        case answered(Mss_Bus_V1_FetchReply)
        /// The cache does not reach back far enough: the session asks the store.
        case passedOn
        /// It waits for a read, which the first waiting request starts.
        case waits(isFirst: Bool)
    }

    /// Answers from memory. If the channel has a higher head, one read serves all waiting requests first.
    func page(for request: PageRequest, answer: @escaping Answer) {
        let now = time()
        let outcome = state.withLock { state -> Outcome in
            var channel = state.channels[request.channelID] ?? Channel()
            defer { state.channels[request.channelID] = channel }
            if let page = channel.tail?.page(for: request, now: now) { return .answered(page) }
            if let tail = channel.tail, tail.upto >= request.head { return .passedOn }
            channel.waiting.append((request, answer))
            defer { channel.isReading = true }
            return .waits(isFirst: !channel.isReading)
        }
        switch outcome {
        case .answered(let page):
            served.increment()
            answer(page)
        case .passedOn:
            passedOn.increment()
            answer(nil)
        case .waits(let isFirst):
            if isFirst { readOn(request.channelID) }
        }
    }

    /// Removes recalled oplogs from the cache.
    func recalled(_ ids: Set<OplogID>, channelID: Int64) {
        state.withLock { state in
            state.channels[channelID]?.tail?.remove(ids)
            if state.channels[channelID]?.isReading == true { state.channels[channelID]?.recalled.formUnion(ids) }
        }
    }

    /// Empties all caches. Called when configurations changed, so that data of a deleted configuration is not sent, and
    /// with a new lease.
    func forgetAll() {
        let waiting = state.withLock { state in
            defer {
                state.channels = [:]
                state.generation += 1
            }
            return state.channels.values.flatMap(\.waiting)
        }
        for item in waiting { item.answer(nil) }
    }

    private func readOn(_ channelID: Int64) {
        let (position, generation) = state.withLock { ($0.channels[channelID]?.tail?.upto, $0.generation) }
        read(channelID, position ?? .zero, position == nil ? GlobalChannelCache.entriesMax : 0) { [self] page in
            received(page, channelID: channelID, generation: generation)
        }
    }

    private func received(_ page: Mss_Bus_V1_FetchReply?, channelID: Int64, generation: Int) {
        let isComplete = page.map { !$0.more } ?? true
        let waiting = state.withLock { state -> [(request: PageRequest, answer: Answer)]? in
            guard state.generation == generation, var channel = state.channels[channelID] else { return [] }
            defer { state.channels[channelID] = channel }
            if let page {
                var tail = channel.tail ?? GlobalChannelCache(from: OplogID(page.discardedUpto))
                tail.add(page.entries.map(Oplog.init(bus:)), upto: OplogID(page.upto))
                tail.remove(channel.recalled)
                channel.tail = tail
            }
            guard isComplete else { return nil }
            defer {
                channel.isReading = false
                channel.waiting = []
                channel.recalled = []
            }
            return channel.waiting
        }
        guard let waiting else { return readOn(channelID) }
        for item in waiting {
            let page = state.withLock { $0.channels[channelID]?.tail?.page(for: item.request, now: time()) }
            (page == nil ? passedOn : served).increment()
            item.answer(page)
        }
    }
}
