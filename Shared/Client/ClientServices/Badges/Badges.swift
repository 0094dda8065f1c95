import Concurrency
public import Foundation
public import Logging
import MobileSync

/// The badges of the user who is shown. Each user's tree is stored and survives restarts; the app's own badges do not.
///
/// Counts and marks are read from memory. When `tap` returns, the tap and its report are on disk. `Badges` repeats the
/// report until the reporter accepts it.
public final class Badges: PushReceiver {
    /// The default Sync ID of badge pushes. It needs a configuration of kind user.
    public static let syncID = "MSS_BADGES"
    private static let key = "tree"

    private struct State {
        /// A nil value means: the device's badges are shown.
        var userID: String?
        var tree = BadgeTree()
    }

    private let store: ServiceStore
    private let reporter: (any BadgeTapReporter)?
    private let logger: Logger
    private let now: @Sendable () -> Date
    /// Changes only inside a transaction of the store.
    private let state = LockedValue(State())
    private let listeners = EventBroadcaster<Set<BadgePath>>(buffer: ServiceLimits.unreadElements)

    /// Opens the badges and shows those of the device until `show` names a user.
    ///
    /// - Parameter reporter: receives the taps. A nil value means: taps are stored, and reported later by an instance
    ///   that has a reporter.
    /// - Throws: `ClientServiceError.store`.
    public init(
        store: ServiceStore, reporter: (any BadgeTapReporter)?, logger: Logger,
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws(ClientServiceError) {
        self.store = store
        self.reporter = reporter
        self.logger = logger
        self.now = now
        try show(userID: nil)
    }

    /// Shows another user's badges. The app's own badges are removed until the app sets them again.
    ///
    /// - Parameter userID: the user; nil: the device's badges.
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for a user id that is empty, contains NUL or has more
    ///   than 100 characters (UTF-16 units). The former badges then stay shown.
    public func show(userID: String?) throws(ClientServiceError) {
        if let userID { try ServiceLimits.check(userID: userID) }
        try change("reading the badges") { items, state in
            state = State(userID: userID, tree: try Self.tree(of: userID, in: items))
        }
        try reportTaps()
    }

    /// Applies a full or incremental list of badges. A list for a user who is not shown is stored for that user.
    ///
    /// - Parameter userID: the user that the push is for; nil: the device.
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for an invalid user id. Nothing is changed then.
    public func take(_ payload: [UInt8], userID: String?) throws(ClientServiceError) -> PushOutcome {
        let list: BadgeList
        do { list = try BadgeList(payload) } catch { return .refused(error.reason) }
        if let userID { try ServiceLimits.check(userID: userID) }
        return try change("storing badges") { items, state in
            var tree = state.userID == userID ? state.tree : try Self.tree(of: userID, in: items)
            do throws(PushFault) {
                guard try tree.apply(list) else { return .known }
            } catch {
                return .refused(error.reason)
            }
            try Self.put(tree, of: userID, in: items)
            if state.userID == userID { state.tree = tree }
            return .applied
        }
    }

    /// Replaces the app's own badges. They are not stored, and taps on them are not reported.
    public func setLocal(_ badges: [Badge]) throws(ClientServiceError) {
        try change("setting the app's badges") { _, state in state.tree.setLocal(badges) }
    }

    /// Clears the badge of a tapped widget, unless a badge below it is shown. A tap on a badge of the server is
    /// reported.
    ///
    /// - Returns: whether a badge was cleared.
    /// - Throws: `ClientServiceError.store`; the badge then stays. When only the later report fails, the badge is
    ///   cleared.
    @discardableResult public func tap(_ path: BadgePath) throws(ClientServiceError) -> Bool {
        let isCleared = try change("storing a tap") { items, state in try tap([path], in: &state, items) }
        try reportTaps()
        return isCleared
    }

    /// Clears all badges that are shown, as if the user had tapped each of them.
    ///
    /// - Throws: as `tap`; all badges are cleared, or none.
    public func clearAll() throws(ClientServiceError) {
        try change("clearing the badges") { items, state in
            _ = try tap(state.tree.shownPaths, in: &state, items)
        }
        try reportTaps()
    }

    /// Applies taps. Returns whether a badge was cleared.
    private func tap(_ paths: [BadgePath], in state: inout State, _ items: ServiceItems) throws -> Bool {
        let taps = paths.map { state.tree.tap($0) }
        let reported = taps.compactMap(\.reported)
        if !reported.isEmpty { try Self.put(state.tree, of: state.userID, in: items) }
        for (index, badge) in reported.enumerated() {
            try storeTap(on: badge, index: index, of: state.userID, in: items)
        }
        return taps.contains { $0.isCleared }
    }

    /// The mark to draw at a path: the badge's own mark, or a summary of the badges below the path.
    public func mark(at path: BadgePath) -> BadgeMark { tree.mark(at: path) }
    /// Counts the badge at a path and all badges below it.
    public func count(at path: BadgePath, mode: BadgeCountMode) -> Int { tree.count(at: path, mode: mode) }
    /// Counts the badges of a widget and below it, on every path that contains the widget.
    public func count(ofWidget widget: String, mode: BadgeCountMode) -> Int { tree.count(ofWidget: widget, mode: mode) }
    /// Counts the badges of a business.
    public func count(ofBusiness business: String, mode: BadgeCountMode) -> Int {
        tree.count(ofBusiness: business, mode: mode)
    }
    /// The version of the last list; nil when no list has arrived for the user who is shown.
    public var version: Int64? { tree.version == 0 ? nil : tree.version }

    /// A new stream of paths whose display can have changed. A reader that is more than 64 elements behind loses the
    /// oldest.
    public var changes: AsyncStream<Set<BadgePath>> { listeners.listen() }

    private var tree: BadgeTree { state.withLock { $0.tree } }

    // MARK: Reports

    /// Passes the pending taps of the user who is shown to the reporter, in order. Each tap and each `show` also does
    /// this. Taps that the reporter rejects stay for the next call.
    ///
    /// - Throws: `ClientServiceError.store`; the taps stay stored and can be reported again.
    public func reportTaps() throws(ClientServiceError) {
        guard let reporter else { return }
        let owner = state.withLock { $0.userID } ?? ServiceItems.common
        while let tap = try firstTap(of: owner) {
            do { try reporter.report(tap) } catch {
                logger.info(
                    "badge taps could not be reported; they are reported later", metadata: ["error": "\(error)"])
                return
            }
            try store.write("deleting a reported tap") { items in
                try items.remove(.badgeTaps, owner: owner, key: tap.id)
            }
        }
    }

    private func firstTap(of owner: String) throws(ClientServiceError) -> BadgeTap? {
        try store.read("reading taps") { items in
            try items.all(.badgeTaps, owner: owner, limit: 1).first
                .map { try JSONDecoder().decode(BadgeTap.self, from: $0.body) }
        }
    }

    private func storeTap(on badge: Badge, index: Int, of userID: String?, in items: ServiceItems) throws {
        let (owner, at) = (userID ?? ServiceItems.common, now().milliseconds)
        // The time and the index sort the ids in the order of the taps.
        let suffix = UInt64(index) << 48 | UInt64.random(in: 0..<1 << 48)
        let id = Self.digits(UInt64(clamping: at)) + Self.digits(suffix)
        let tap = BadgeTap(
            id: id, userID: userID, path: badge.path, business: badge.business, stamp: badge.stamp, at: at)
        try items.put(try JSONEncoder().encode(tap), .badgeTaps, owner: owner, key: id)
        for key in try items.keys(.badgeTaps, owner: owner).dropLast(ServiceLimits.pendingTaps) {
            try items.remove(.badgeTaps, owner: owner, key: key)
        }
    }

    private static func digits(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: State

    /// Changes the stored data and the state in memory together. Listeners are notified after the commit.
    private func change<Value>(
        _ doing: String, _ body: (ServiceItems, inout State) throws -> Value
    ) throws(ClientServiceError) -> Value {
        let (value, paths, _) = try store.write(
            doing,
            { items in
                let before = state.withLock { $0 }
                var next = before
                let value = try body(items, &next)
                return (value, next.tree.paths(differingFrom: before.tree), next)
            }, committed: { _, _, next in state.withLock { $0 = next } })
        if !paths.isEmpty { listeners.send(paths) }
        return value
    }

    private static func tree(of userID: String?, in items: ServiceItems) throws -> BadgeTree {
        try items.body(.badges, owner: userID ?? ServiceItems.common, key: key)
            .map { try JSONDecoder().decode(BadgeTree.self, from: $0) } ?? BadgeTree()
    }

    private static func put(_ tree: BadgeTree, of userID: String?, in items: ServiceItems) throws {
        try items.put(try JSONEncoder().encode(tree), .badges, owner: userID ?? ServiceItems.common, key: key)
    }
}
