/// An entity tag in a header: `"abc"` or `W/"abc"` (RFC 9110 §8.8.3).
enum ETag {
    /// Whether the text is one entity tag: not a list, not `*`, and without forbidden characters.
    static func isWellFormed(_ text: String) -> Bool {
        let bytes = Array((text.hasPrefix("W/") ? text.dropFirst(2) : text[...]).utf8)
        guard bytes.count >= 2, bytes.count <= 1_000, bytes.first == 34, bytes.last == 34 else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 > 32 && $0 != 34 && $0 != 127 }
    }

    /// Whether versions with this tag have the same bytes, so that parts of them can be joined.
    static func isStrong(_ text: String) -> Bool { isWellFormed(text) && !text.hasPrefix("W/") }
}
