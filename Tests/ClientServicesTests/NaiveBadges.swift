@testable import ClientServices

/// Badges by the text of the README, on texts and without optimisation.
struct NaiveBadges {
    struct Entry: Equatable {
        var style: String
        var number: Int
        var business: String
        var stamp: Int?

        var mark: BadgeMark {
            switch style {
            case ".": .point
            case "number": .number(number)
            case "new": .new
            case "text": .text("t")
            default: .none
            }
        }
        var isShown: Bool { style != "none" && (style != "number" || number > 0) }
    }

    var version = 0
    var remote: [String: Entry] = [:]
    var local: [String: Entry] = [:]
    var tapped: [String: Int] = [:]

    static func json(_ version: Int, _ member: String, _ entries: [String: Entry], removed: [String]? = nil) -> String {
        let badges = entries.map { path, entry in
            let stamp = entry.stamp.map { #","stamp":\#($0)"# } ?? ""
            return #"{"path":"\#(path)","business":"\#(entry.business)","style":"\#(entry.style)","#
                + #""number":\#(entry.number),"text":"t"\#(stamp)}"#
        }
        let gone = removed.map { #","removed":[\#($0.map { "\"\($0)\"" }.joined(separator: ","))]"# } ?? ""
        return #"{"version":\#(version + 1),"\#(member)":[\#(badges.joined(separator: ","))]\#(gone)}"#
    }

    mutating func applyFull(_ version: Int, _ entries: [String: Entry]) -> Bool {
        guard version + 1 > self.version else { return false }
        remote = [:]
        tapped = tapped.filter { entries[$0.key] != nil }
        return applyChanges(version, entries, [])
    }

    mutating func applyChanges(_ version: Int, _ entries: [String: Entry], _ removed: [String]) -> Bool {
        guard version + 1 > self.version else { return false }
        self.version = version + 1
        for path in removed {
            remote[path] = nil
            tapped[path] = nil
        }
        for (path, entry) in entries {
            if let stamp = entry.stamp, let last = tapped[path], stamp <= last {
                remote[path] = nil
            } else {
                remote[path] = entry
                tapped[path] = nil
            }
        }
        return true
    }

    mutating func tap(_ path: String) -> (isCleared: Bool, isReported: Bool) {
        guard !shown.contains(where: { $0.path.hasPrefix(path + "/") }), shown.contains(where: { $0.path == path })
        else { return (false, false) }
        local[path] = nil
        guard let entry = remote[path], entry.isShown else { return (true, false) }
        remote[path] = nil
        tapped[path] = entry.stamp
        return (true, true)
    }

    var shown: [(path: String, entry: Entry)] {
        (remote.map { ($0.key, $0.value) } + local.map { ($0.key, $0.value) }).filter(\.1.isShown)
    }

    private func below(_ path: String) -> [(path: String, entry: Entry)] {
        shown.filter { ($0.path + "/").hasPrefix(path + "/") }
    }

    private static func sum(_ badges: [(path: String, entry: Entry)], _ mode: BadgeCountMode) -> Int {
        let styles = badges.map(\.entry.style)
        let points = styles.filter { $0 == "." }.count
        let news = styles.filter { $0 == "new" }.count
        let numbers = badges.filter { $0.entry.style == "number" }.map(\.entry.number).reduce(0, +)
        switch mode {
        case .point: return points
        case .new: return news
        case .number: return numbers
        case .all: return points + news + numbers + styles.filter { $0 == "text" }.count
        }
    }

    func count(at path: String, _ mode: BadgeCountMode) -> Int { Self.sum(below(path), mode) }

    func count(ofWidget widget: String) -> Int {
        Self.sum(shown.filter { "/\($0.path)/".contains("/\(widget)/") }, .all)
    }

    func numbers(ofBusiness business: String) -> Int {
        Self.sum(shown.filter { $0.entry.business == business }, .number)
    }

    func mark(at path: String) -> BadgeMark {
        let here = below(path)
        if here.count == 1, here[0].path == path { return here[0].entry.mark }
        if Self.sum(here, .number) > 0 { return .number(Self.sum(here, .number)) }
        if Self.sum(here, .new) > 0 { return .new }
        return here.isEmpty ? .none : .point
    }
}
