/// The badges of one user: the server's badges, the app's own badges and the cleared badges. A pure value.
///
/// A badge counts for every widget of its path, so parents sum their children. A parent can have its own badge. A tap
/// clears it only when nothing below it is shown.
struct BadgeTree: Hashable, Sendable {
    /// The version of the last list; 0 before the first one.
    private(set) var version: Int64 = 0
    /// The badges that the server has set.
    private(set) var remote: [BadgePath: Badge] = [:]
    /// The badges that the app has set; not stored, so they end with the process.
    private(set) var local: [BadgePath: Badge] = [:]
    /// The stamps of tapped badges. An entry ends when the server sends a newer badge or removes the badge.
    private(set) var cleared: [BadgePath: Int64] = [:]

    // MARK: Changes

    /// Applies a list that is newer than the current state.
    ///
    /// - Returns: whether the list was newer.
    /// - Throws: `PushFault` when there would be too many badges; the tree is then unchanged.
    mutating func apply(_ list: BadgeList) throws(PushFault) -> Bool {
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
            throw PushFault("there would be \(next.remote.count) badges; the limit is \(ServiceLimits.badges)")
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

    /// Replaces the app's own badges.
    mutating func setLocal(_ badges: [Badge]) {
        local = Dictionary(badges.map { ($0.path, $0) }, uniquingKeysWith: { $1 })
    }

    /// Applies a tap on a widget: clears its badge, unless a badge below it is shown.
    ///
    /// - Returns: whether a badge was cleared, and the server's badge if it was that one.
    mutating func tap(_ path: BadgePath) -> (isCleared: Bool, reported: Badge?) {
        let (own, mine) = (remote[path], local[path])
        let isBelowShown = shown.contains { $0.path != path && $0.path.isAtOrBelow(path) }
        guard own?.isShown == true || mine?.isShown == true, !isBelowShown else { return (false, nil) }
        local[path] = nil
        guard let own, own.isShown else { return (true, nil) }
        remote[path] = nil
        cleared[path] = own.stamp
        // A server that sends only incremental lists never removes these entries. The lowest stamp is the most likely
        // to be obsolete.
        if cleared.count > ServiceLimits.badges, let oldest = cleared.min(by: { $0.value < $1.value }) {
            cleared[oldest.key] = nil
        }
        return (true, own)
    }

    // MARK: Visible badges

    /// The paths with a badge of their own, those below others first.
    var shownPaths: [BadgePath] {
        Set(shown.map(\.path)).sorted { $0.widgets.count > $1.widgets.count }
    }

    private var shown: some Sequence<Badge> {
        [remote.values, local.values].lazy.joined().filter(\.isShown)
    }

    /// Counts the badge at a path and all badges below it.
    func count(at path: BadgePath, mode: BadgeCountMode) -> Int {
        sum(mode) { $0.path.isAtOrBelow(path) }
    }

    /// Counts the badges of a widget and below it, on every path that contains the widget.
    func count(ofWidget widget: String, mode: BadgeCountMode) -> Int {
        sum(mode) { $0.path.widgets.contains(widget) }
    }

    /// Counts the badges of a business.
    func count(ofBusiness business: String, mode: BadgeCountMode) -> Int {
        sum(mode) { $0.business == business }
    }

    private func sum(_ mode: BadgeCountMode, _ isCounted: (Badge) -> Bool) -> Int {
        shown.reduce(0) { isCounted($1) ? $0 + $1.mark.weight(mode) : $0 }
    }

    /// The mark to draw at a path: the badge's own mark when it is the only one. Otherwise the sum of numbers, or
    /// `new`, or a point, in this order of preference.
    func mark(at path: BadgePath) -> BadgeMark {
        let here = shown.filter { $0.path.isAtOrBelow(path) }
        if here.count == 1, let only = here.first, only.path == path { return only.mark }
        let number = here.reduce(0) { $0 + $1.mark.weight(.number) }
        if number > 0 { return .number(number) }
        if here.contains(where: { $0.mark == .new }) { return .new }
        return here.isEmpty ? .none : .point
    }

    /// The paths whose display can differ from another tree: the paths of different badges and all paths above them.
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
