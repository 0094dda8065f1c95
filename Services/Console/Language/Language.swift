import Foundation

/// A language of the console's pages.
enum Language: String, CaseIterable, Sendable {
    case english = "en"
    case chinese = "zh"

    /// The language that a browser prefers among ours (RFC 9110, Accept-Language); English when it names none of them.
    ///
    /// - Parameter header: as the browser sent it.
    init(accepting header: String?) {
        let ranges = (header ?? "").split(separator: ",").map { range -> (tag: String, weight: Double) in
            let parts = range.split(separator: ";").map { $0.filter { $0 != " " } }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            return (parts.first?.lowercased() ?? "", weight)
        }
        let known = ranges.filter { $0.weight > 0 }.compactMap { range in
            Language(rawValue: String(range.tag.prefix(2))).map { ($0, range.weight) }
        }
        // The first of those with the highest weight.
        self = known.max { $0.1 < $1.1 }.flatMap { best in known.first { $0.1 == best.1 }?.0 } ?? .english
    }
}
