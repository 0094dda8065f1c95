import Foundation
import SyncModel

/// Translations of sentences that other processes and the API's description write in English; see `sentences.json`.
enum SentenceTranslations {
    /// The sentence in a language; unchanged when it has no translation.
    static func text(_ english: String, in language: Language) -> String {
        language == .english ? english : translation(of: english) ?? english
    }

    /// The sentence in Chinese; nil when it has no translation.
    static func translation(of english: String) -> String? {
        if let text = whole[english] { return text }
        // Delivery states have their texts in `words.json`.
        if let state = DeliveryState.allCases.first(where: { $0.sentence == english }) {
            return PageTexts.of(.chinese).texts["state.\(state.code)"]
        }
        for pattern in patterns where english.hasPrefix(pattern.before) && english.hasSuffix(pattern.after) {
            let detail = english.dropFirst(pattern.before.count).dropLast(pattern.after.count)
            // The two ends must not overlap.
            guard english.count >= pattern.before.count + pattern.after.count else { continue }
            return pattern.text.replacing("%", with: detail)
        }
        return nil
    }

    /// The file: English → Chinese, both with `%` in place of a name or a number.
    static let file: [String: String] =
        (try? JSONDecoder().decode([String: String].self, from: Data(PackageResources.sentences_json))) ?? [:]

    private static let whole = file.filter { !$0.key.contains("%") }

    /// Sentences with `%`, the longest first, so that the most specific pattern matches.
    private static let patterns = file.filter { $0.key.contains("%") }.sorted { $0.key.count > $1.key.count }.map {
        let ends = $0.key.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        return (before: String(ends[0]), after: String(ends[1]), text: $0.value)
    }
}
