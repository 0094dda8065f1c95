/// The position of a badge: the ids of the widgets from the outermost one to the badge's own, such as
/// `home/messages/chat-17`.
public struct BadgePath: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The widget ids; at least one.
    public let widgets: [String]

    /// Parses a path. The result is nil when the text is not a valid path.
    ///
    /// - Parameter text: 1 to 8 widget ids, separated by slashes. An id has 1 to 64 characters (UTF-16 units).
    public init?(_ text: String) {
        let widgets = text.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        guard widgets.count <= ServiceLimits.pathSegments else { return nil }
        for widget in widgets where !(1...ServiceLimits.wordUnits).contains(widget.utf16.count) { return nil }
        self.widgets = widgets
    }

    private init(widgets: [String]) { self.widgets = widgets }

    /// The path itself and all paths above it.
    var withAncestors: [BadgePath] { widgets.indices.map { BadgePath(widgets: Array(widgets[...$0])) } }

    /// Whether this path equals the given path or is below it.
    func isAtOrBelow(_ path: BadgePath) -> Bool { widgets.starts(with: path.widgets) }

    public var description: String { widgets.joined(separator: "/") }

    public static func < (left: BadgePath, right: BadgePath) -> Bool {
        left.widgets.lexicographicallyPrecedes(right.widgets)
    }
}

extension BadgePath: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let path = BadgePath(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a badge path: \(text)")
        }
        self = path
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
