/// Which topics a client wants (MQTT 5.0, 4.7): levels between slashes, `+` for one of any name, `#` for all that follow.
package struct MQTTTopicFilter: Hashable, Sendable {
    /// As it was written.
    package let text: String
    private let levels: [Substring]

    /// Nil for one that the specification does not allow.
    package init?(_ text: String) {
        let levels = text.split(separator: "/", omittingEmptySubsequences: false)
        guard !text.isEmpty, levels.dropLast().allSatisfy({ $0 != "#" }),
            levels.allSatisfy({ $0.count == 1 || !$0.contains(where: { $0 == "+" || $0 == "#" }) })
        else { return nil }
        self.text = text
        self.levels = levels
    }

    /// Whether several clients want to share it.
    package var isShared: Bool { levels.first == "$share" }

    /// Whether a topic is one of those.
    package func matches(_ topic: String) -> Bool {
        let names = topic.split(separator: "/", omittingEmptySubsequences: false)
        // Topics of a server's own are not meant by a wildcard.
        if topic.hasPrefix("$"), levels.first == "#" || levels.first == "+" { return false }
        let (fixed, isOpen) = levels.last == "#" ? (levels.dropLast(), true) : (levels[...], false)
        // "a/#" is also "a" itself.
        guard isOpen ? names.count >= fixed.count : names.count == fixed.count else { return false }
        return zip(fixed, names).allSatisfy { $0 == "+" || $0 == $1 }
    }
}
