import Foundation

/// The texts of the pages in one language; see `words.json`.
struct PageTexts: Sendable {
    /// Texts by key.
    let texts: [String: String]
    /// Texts of closed sets, such as `role.viewer`: by set, then by word.
    let sets: [String: [String: String]]

    init(texts: [String: String]) {
        self.texts = texts
        var sets: [String: [String: String]] = [:]
        for (key, text) in texts {
            guard let dot = key.firstIndex(of: ".") else { continue }
            sets[String(key[..<dot]), default: [:]][String(key[key.index(after: dot)...])] = text
        }
        self.sets = sets
    }

    /// The text of a key, with the detail in place of `%`; the key itself when it has no text.
    func text(_ key: String, _ detail: String = "") -> String {
        (texts[key] ?? key).replacing("%", with: detail)
    }

    /// The texts of a language.
    static func of(_ language: Language) -> PageTexts { all[language] ?? PageTexts(texts: [:]) }

    /// The file: key → language → text.
    static let file: [String: [String: String]] =
        (try? JSONDecoder().decode([String: [String: String]].self, from: Data(PackageResources.words_json))) ?? [:]

    private static let all = Dictionary(
        uniqueKeysWithValues: Language.allCases.map { language in
            (language, PageTexts(texts: file.compactMapValues { $0[language.rawValue] }))
        })
}

/// A language of the console's pages.
enum Language: String, CaseIterable, Sendable {
    case english = "en"
    case chinese = "zh"

    /// The language that a browser prefers (RFC 9110, Accept-Language); English when it names no supported one.
    ///
    /// - Parameter header: the value of Accept-Language.
    init(accepting header: String?) {
        let ranges = (header ?? "").split(separator: ",").map { range -> (tag: String, weight: Double) in
            let parts = range.split(separator: ";").map { $0.filter { $0 != " " } }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            return (parts.first?.lowercased() ?? "", weight)
        }
        let known = ranges.filter { $0.weight > 0 }.compactMap { range in
            Language(rawValue: String(range.tag.prefix(2))).map { ($0, range.weight) }
        }
        // When weights are equal, the first one wins.
        self = known.max { $0.1 < $1.1 }.flatMap { best in known.first { $0.1 == best.1 }?.0 } ?? .english
    }
}
