public import Foundation
public import Logging
import Synchronization

/// The badge tree of the user who is shown, kept per user over restarts; the app's own badges are not.
///
/// Counts and marks are from memory. A tap is on the disk with its report before `tap` returns, and is reported until
/// the reporter has taken it.
public final class Badges: PushReceiver {
    /// The Sync ID that badges are pushed under, unless the app's backend has another: a configuration of kind user.
    public static let syncID = "MSS_BADGES"
    private static let key = "tree"

    private struct State {
        /// Nil: nobody.
        var userID: String?
        var tree = BadgeTree()
    }

    private let store: ServiceStore
    private let reporter: (any BadgeTapReporter)?
    private let logger: Logger
    private let now: @Sendable () -> Date
    /// Changes only in the store's turn.
    private let state = Mutex(State())
    private let listeners = Listeners<Set<BadgePath>>()

    /// Shows the badges of the device, until `show` names a user.
    ///
    /// - Parameter reporter: nil: taps are kept, and reported by an instance that has one.
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

    /// Shows another user's badges, nil for the device's; the app's own badges are gone until it sets them again.
    ///
    /// - Throws: `ClientServiceError.store`, `invalidArgument` for a user id that is empty, has a NUL or over 100
    ///   characters; those before are shown then.
    public func show(userID: String?) throws(ClientServiceError) {
        if let userID { try ServiceLimits.check(userID: userID) }
        try change("reading the badges") { items, state in
            state = State(userID: userID, tree: try Self.tree(of: userID, in: items))
        }
        try reportTaps()
    }

    /// Takes a full or incremental list. One for a user who is not shown is kept for when that user is.
    ///
    /// - Throws: `ClientServiceError.store`; nothing has changed.
    public func take(_ payload: [UInt8], userID: String?) throws(ClientServiceError) -> PushOutcome {
        let list: BadgeList
        do { list = try BadgeList(payload) } catch { return .refused(error.reason) }
        if let userID { try ServiceLimits.check(userID: userID) }
        return try change("storing badges") { items, state in
            var tree = state.userID == userID ? state.tree : try Self.tree(of: userID, in: items)
            do throws(PushFault) {
                guard try tree.take(list) else { return .known }
            } catch {
                return .refused(error.reason)
            }
            try Self.put(tree, of: userID, in: items)
            if state.userID == userID { state.tree = tree }
            return .applied
        }
    }

    /// Sets the app's own badges, in place of those before: they are not kept, and taps on them are not reported.
    public func setLocal(_ badges: [Badge]) throws(ClientServiceError) {
        try change("setting the app's badges") { _, state in state.tree.setLocal(badges) }
    }

    /// The user has tapped a widget: its badge goes, unless something is shown below it; the server's is reported.
    ///
    /// - Returns: whether a badge went.
    /// - Throws: `ClientServiceError.store`; the badge is still there.
    @discardableResult public func tap(_ path: BadgePath) throws(ClientServiceError) -> Bool {
        let isCleared = try change("noting a tap") { items, state in
            let (isCleared, reported) = state.tree.tap(path)
            if let reported {
                try Self.put(state.tree, of: state.userID, in: items)
                try keep(tapOn: reported, of: state.userID, in: items)
            }
            return isCleared
        }
        try reportTaps()
        return isCleared
    }

    /// What to show at a path.
    public func mark(at path: BadgePath) -> BadgeMark { tree.mark(at: path) }
    /// Counts the badge at a path and all below it.
    public func count(at path: BadgePath, mode: BadgeCountMode) -> Int { tree.count(at: path, mode: mode) }
    /// Counts the badges of a widget and below it, on whatever paths it is.
    public func count(ofWidget widget: String, mode: BadgeCountMode) -> Int { tree.count(ofWidget: widget, mode: mode) }
    /// Counts the badges of a business.
    public func count(ofBusiness business: String, mode: BadgeCountMode) -> Int {
        tree.count(ofBusiness: business, mode: mode)
    }
    /// The version of the last list; nil: none has come for the user who is shown.
    public var version: Int64? { tree.version == 0 ? nil : tree.version }

    /// Paths at which something may look different, from now on; a listener that is more than 64 behind loses the
    /// oldest.
    public var changes: AsyncStream<Set<BadgePath>> { listeners.listen() }

    private var tree: BadgeTree { state.withLock { $0.tree } }

    // MARK: Reports

    /// Gives the reporter the taps of the user who is shown that it has not taken, in their order; done by itself at
    /// each tap and each `show`. What it does not take now stays for the next time.
    ///
    /// - Throws: `ClientServiceError.store`; taps are kept, and may be reported once more.
    public func reportTaps() throws(ClientServiceError) {
        guard let reporter else { return }
        let owner = state.withLock { $0.userID } ?? ServiceItems.common
        while let tap = try firstTap(of: owner) {
            do { try reporter.report(tap) } catch {
                logger.info("taps on badges wait to be reported", metadata: ["error": "\(error)"])
                return
            }
            try store.write("forgetting a tap") { items in try items.remove(.badgeTaps, owner: owner, key: tap.id) }
        }
    }

    private func firstTap(of owner: String) throws(ClientServiceError) -> BadgeTap? {
        try store.read("reading taps") { items in
            try items.all(.badgeTaps, owner: owner, limit: 1).first
                .map { try JSONDecoder().decode(BadgeTap.self, from: $0.body) }
        }
    }

    private func keep(tapOn badge: Badge, of userID: String?, in items: ServiceItems) throws {
        let (owner, at) = (userID ?? ServiceItems.common, now().milliseconds)
        // The time in front puts them in order.
        let id = Self.digits(UInt64(clamping: at)) + Self.digits(UInt64.random(in: .min ... .max))
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

    /// Changes the state and what is stored in one go; listeners hear of it once it is on the disk.
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
