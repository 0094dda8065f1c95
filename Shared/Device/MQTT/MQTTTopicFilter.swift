/// A topic filter (MQTT 5.0, 4.7): levels between slashes, `+` for any one level, `#` for all remaining levels.
package struct MQTTTopicFilter: Hashable, Sendable {
    /// The filter's source text.
    package let text: String
    private let levels: [Substring]

    /// The value is nil for a filter that the specification does not allow.
    package init?(_ text: String) {
        let levels = text.split(separator: "/", omittingEmptySubsequences: false)
        guard !text.isEmpty, levels.dropLast().allSatisfy({ $0 != "#" }),
            levels.allSatisfy({ $0.count == 1 || !$0.contains(where: { $0 == "+" || $0 == "#" }) })
        else { return nil }
        self.text = text
        self.levels = levels
    }

    /// Whether it is a shared subscription.
    package var isShared: Bool { levels.first == "$share" }

    /// Whether the filter matches a topic.
    package func matches(_ topic: String) -> Bool {
        let names = topic.split(separator: "/", omittingEmptySubsequences: false)
        // Wildcards at the first level do not match the server's own topics.
        if topic.hasPrefix("$"), levels.first == "#" || levels.first == "+" { return false }
        let (fixed, isOpen) = levels.last == "#" ? (levels.dropLast(), true) : (levels[...], false)
        // "a/#" also matches "a".
        guard isOpen ? names.count >= fixed.count : names.count == fixed.count else { return false }
        return zip(fixed, names).allSatisfy { $0 == "+" || $0 == $1 }
    }
}
