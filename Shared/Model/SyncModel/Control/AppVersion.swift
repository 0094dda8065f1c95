/// A dotted version compared part by part as integers; a missing part counts as 0 (D12).
package struct AppVersion: Comparable, Sendable {
    /// Digits of each part without leading zeros, so that parts of any length compare without overflow.
    private let parts: [String]

    /// Fails when the text is not of the form `\d+(\.\d+)*`.
    package init?(_ text: String) {
        var parts: [String] = []
        for part in text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard !part.isEmpty, part.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
                return nil
            }
            let digits = part.drop { $0 == UInt8(ascii: "0") }
            parts.append(String(decoding: digits, as: UTF8.self))
        }
        while parts.last?.isEmpty == true { parts.removeLast() }
        self.parts = parts
    }

    package static func < (left: AppVersion, right: AppVersion) -> Bool {
        for index in 0..<max(left.parts.count, right.parts.count) {
            let a = index < left.parts.count ? left.parts[index] : ""
            let b = index < right.parts.count ? right.parts[index] : ""
            if a.utf8.count != b.utf8.count { return a.utf8.count < b.utf8.count }
            if a != b { return a < b }
        }
        return false
    }
}
