/// The badges of one user: what the server has set, what the app adds, what taps have cleared; pure.
///
/// A badge counts for every widget of its path, so parents sum their children. A badge may sit on a parent too: it
/// counts there, and can be tapped away once nothing is shown below it.
struct BadgeTree: Hashable, Sendable {
    /// Of the last list; 0 before the first.
    private(set) var version: Int64 = 0
    /// The server's.
    private(set) var remote: [BadgePath: Badge] = [:]
    /// The app's own: not kept over restarts.
    private(set) var local: [BadgePath: Badge] = [:]
    /// Stamps of badges that were tapped, until the server's badge is newer or gone.
    private(set) var cleared: [BadgePath: Int64] = [:]

    // MARK: Changes

    /// Takes a list, unless it is not newer than what is here.
    ///
    /// - Returns: whether it was taken.
    /// - Throws: `PushFault` for too many badges; nothing has changed.
    mutating func take(_ list: BadgeList) throws(PushFault) -> Bool {
        guard list.version > version else { return false }
        var next = self
        if list.isFull {
            next.remote = [:]
            let paths = Set(list.badges.map(\.path))
            next.cleared = cleared.filter { paths.contains($0.key) }
        }
        for path in list.removed {
            next.remote[path] = nil
            next.cleared[path] = nil
        }
        for badge in list.badges { next.set(badge) }
        guard next.remote.count <= ServiceLimits.badges else {
            throw PushFault("it makes \(next.remote.count) badges; at most \(ServiceLimits.badges) are kept")
        }
        next.version = list.version
        self = next
        return true
    }

    private mutating func set(_ badge: Badge) {
        if let stamp = badge.stamp, let tapped = cleared[badge.path], stamp <= tapped {
            remote[badge.path] = nil
        } else {
            remote[badge.path] = badge
            cleared[badge.path] = nil
        }
    }

    /// Sets the app's own badges, in place of those before.
    mutating func setLocal(_ badges: [Badge]) {
        local = Dictionary(badges.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
    }

    /// The user has tapped a widget: its badge goes, unless something is shown below it.
    ///
    /// - Returns: whether something was cleared, and the server's badge if it was that.
    mutating func tap(_ path: BadgePath) -> (isCleared: Bool, reported: Badge?) {
        let (own, mine) = (remote[path], local[path])
        let isBelowShown = shown.contains { $0.path != path && $0.path.isAtOrBelow(path) }
        guard own?.isShown == true || mine?.isShown == true, !isBelowShown else { return (false, nil) }
        local[path] = nil
        guard let own, own.isShown else { return (true, nil) }
        remote[path] = nil
        cleared[path] = own.stamp
        // Of a server that sends no full lists: what was tapped at the lowest stamp is the likeliest to be past.
        if cleared.count > ServiceLimits.badges, let oldest = cleared.min(by: { $0.value < $1.value }) {
            cleared[oldest.key] = nil
        }
        return (true, own)
    }

    // MARK: What is to be seen

    private var shown: some Sequence<Badge> {
        [remote.values, local.values].lazy.joined().filter(\.isShown)
    }

    /// Of the badge at a path and all below it.
    func count(at path: BadgePath, mode: BadgeCountMode) -> Int {
        sum(mode) { $0.path.isAtOrBelow(path) }
    }

    /// Of the badges of a widget and below it, wherever the widget is.
    func count(ofWidget widget: String, mode: BadgeCountMode) -> Int {
        sum(mode) { $0.path.widgets.contains(widget) }
    }

    /// Of the badges of a business.
    func count(ofBusiness business: String, mode: BadgeCountMode) -> Int {
        sum(mode) { $0.business == business }
    }

    private func sum(_ mode: BadgeCountMode, _ isCounted: (Badge) -> Bool) -> Int {
        shown.reduce(0) { isCounted($1) ? $0 + $1.mark.weight(mode) : $0 }
    }

    /// What to show at a path: the mark of its badge when that is all there is; otherwise numbers summed up, before
    /// `new`, before a point.
    func mark(at path: BadgePath) -> BadgeMark {
        let here = shown.filter { $0.path.isAtOrBelow(path) }
        if here.count == 1, let only = here.first, only.path == path { return only.mark }
        let number = here.reduce(0) { $0 + $1.mark.weight(.number) }
        if number > 0 { return .number(number) }
        if here.contains(where: { $0.mark == .new }) { return .new }
        return here.isEmpty ? .none : .point
    }

    /// The paths at which something may look different from another tree: those of badges that differ, and above.
    func paths(differingFrom other: BadgeTree) -> Set<BadgePath> {
        let all = Set([remote, local, other.remote, other.local].flatMap(\.keys))
        let differing = all.filter { remote[$0] != other.remote[$0] || local[$0] != other.local[$0] }
        return Set(differing.flatMap(\.withAncestors))
    }
}

extension BadgeTree: Codable {
    private enum Member: String, CodingKey { case version, badges, cleared }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Member.self)
        version = try members.decode(Int64.self, forKey: .version)
        let badges = try members.decode([Badge].self, forKey: .badges)
        remote = Dictionary(badges.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
        for (text, stamp) in try members.decode([String: Int64].self, forKey: .cleared) {
            if let path = BadgePath(text) { cleared[path] = stamp }
        }
    }

    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Member.self)
        try members.encode(version, forKey: .version)
        try members.encode(Array(remote.values), forKey: .badges)
        try members.encode(
            Dictionary(uniqueKeysWithValues: cleared.map { ("\($0.key)", $0.value) }), forKey: .cleared)
    }
}
