/// The header `Content-Range` of a response: `bytes 100-199/1000` (RFC 9110 §14.4).
struct ContentRange: Sendable, Hashable {
    /// The offset of the first byte.
    let start: Int64
    /// The size of the whole file; nil: not known.
    let total: Int64?

    /// - Returns: nil when the text has another form.
    init?(_ text: String) {
        let parts = text.split(separator: " ")
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
        let sides = parts[1].split(separator: "/")
        guard sides.count == 2 else { return nil }
        let ends = sides[0].split(separator: "-")
        guard ends.count == 2, let start = Int64(ends[0]), let end = Int64(ends[1]), end >= start else { return nil }
        self.start = start
        total = Int64(sides[1])
    }
}
