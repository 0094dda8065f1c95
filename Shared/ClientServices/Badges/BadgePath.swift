/// Where a badge is: the ids of the widgets from the outermost to its own, such as `home/messages/chat-17`.
public struct BadgePath: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Ids of widgets; at least one.
    public let widgets: [String]

    /// - Parameter text: 1 to 8 ids with slashes between them; an id has 1 to 64 characters. Nil: it is not that.
    public init?(_ text: String) {
        let widgets = text.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        guard widgets.count <= ServiceLimits.pathSegments else { return nil }
        for widget in widgets where !(1...ServiceLimits.wordUnits).contains(widget.utf16.count) { return nil }
        self.widgets = widgets
    }

    private init(widgets: [String]) { self.widgets = widgets }

    /// The path, and every one above it.
    var withAncestors: [BadgePath] { widgets.indices.map { BadgePath(widgets: Array(widgets[...$0])) } }

    /// Whether this is the path, or one below it.
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
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not the path of a badge: \(text)")
        }
        self = path
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
