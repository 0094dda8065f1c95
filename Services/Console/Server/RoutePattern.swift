import Foundation

/// A path with named parts, such as `/instances/{instance}/records/{number}`.
struct RoutePattern: Sendable, Hashable {
    let text: String
    private let parts: [String]

    init(_ text: String) {
        self.text = text
        parts = text.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
    }

    /// The names of its parts, in order.
    var names: [String] { parts.compactMap(Self.name) }

    /// The values of the named parts when a path matches; nil: it does not.
    ///
    /// - Parameter path: percent-encoded, as the request has it.
    func match(_ path: [Substring]) -> [String: String]? {
        guard path.count == parts.count else { return nil }
        var values: [String: String] = [:]
        for (part, given) in zip(parts, path) {
            if let name = Self.name(part) {
                guard let value = String(given).removingPercentEncoding, !value.isEmpty else { return nil }
                values[name] = value
            } else if part != given {
                return nil
            }
        }
        return values
    }

    private static func name(_ part: String) -> String? {
        part.hasPrefix("{") && part.hasSuffix("}") ? String(part.dropFirst().dropLast()) : nil
    }
}
