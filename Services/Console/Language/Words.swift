import Foundation

/// What the pages say, in each language; keys and texts are in `words.json`.
struct Words: Sendable {
    /// Texts by key.
    let texts: [String: String]
    /// Those of closed sets, such as `role.viewer`: by the set, then by the word.
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

    /// The text of a key, with the detail where it says `%`; a key that has none is shown itself.
    func text(_ key: String, _ detail: String = "") -> String {
        (texts[key] ?? key).replacing("%", with: detail)
    }

    /// The words of a language.
    static func of(_ language: Language) -> Words { all[language] ?? Words(texts: [:]) }

    /// As they stand in the file: key → language → text.
    static let file: [String: [String: String]] =
        (try? JSONDecoder().decode([String: [String: String]].self, from: Data(PackageResources.words_json))) ?? [:]

    private static let all = Dictionary(
        uniqueKeysWithValues: Language.allCases.map { language in
            (language, Words(texts: file.compactMapValues { $0[language.rawValue] }))
        })
}
