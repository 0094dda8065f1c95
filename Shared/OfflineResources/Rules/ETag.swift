/// An entity tag as headers have it: `"abc"` or `W/"abc"` (RFC 9110 §8.8.3).
enum ETag {
    /// Whether it can be sent in a header, and is not a list of several or `*`.
    static func isWellFormed(_ text: String) -> Bool {
        let bytes = Array((text.hasPrefix("W/") ? text.dropFirst(2) : text[...]).utf8)
        guard bytes.count >= 2, bytes.count <= 1_000, bytes.first == 34, bytes.last == 34 else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 > 32 && $0 != 34 && $0 != 127 }
    }
}
