import Foundation
import SyncModel

/// Sentences that are written in English where they arise (the store's refusals, the API's description), in the other
/// language; they are in `sentences.json`.
enum Sentences {
    /// The sentence in a language; as it is where it is not known.
    static func text(_ english: String, in language: Language) -> String {
        language == .english ? english : translation(of: english) ?? english
    }

    /// The sentence in Chinese; nil: it is not known.
    static func translation(of english: String) -> String? {
        if let text = whole[english] { return text }
        // What a state says of itself has its words already.
        if let state = DeliveryState.allCases.first(where: { $0.sentence == english }) {
            return Words.of(.chinese).texts["state.\(state.code)"]
        }
        for pattern in patterns where english.hasPrefix(pattern.before) && english.hasSuffix(pattern.after) {
            let hole = english.dropFirst(pattern.before.count).dropLast(pattern.after.count)
            // The two ends must not overlap.
            guard english.count >= pattern.before.count + pattern.after.count else { continue }
            return pattern.text.replacing("%", with: hole)
        }
        return nil
    }

    /// As they stand in the file: English → Chinese, both with `%` where a name or number goes.
    static let file: [String: String] =
        (try? JSONDecoder().decode([String: String].self, from: Data(PackageResources.sentences_json))) ?? [:]

    private static let whole = file.filter { !$0.key.contains("%") }

    /// Those with a hole, the longest first: the one that says most of a sentence is its own.
    private static let patterns = file.filter { $0.key.contains("%") }.sorted { $0.key.count > $1.key.count }.map {
        let ends = $0.key.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        return (before: String(ends[0]), after: String(ends[1]), text: $0.value)
    }
}
