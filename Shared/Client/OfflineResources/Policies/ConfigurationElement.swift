/// An element of an XML file with its children and its own text, without spaces around it. Attributes, comments and
/// processing instructions are ignored. Only the five predefined entities and numeric references are known, so a file
/// cannot refer to another one.
///
/// It is a parser of its own because Foundation's needs libxml2, which statically linked programs do not have.
struct ConfigurationElement {
    let name: String
    var children: [ConfigurationElement] = []
    var text = ""

    /// The first child with a name.
    func child(_ name: String) -> ConfigurationElement? { children.first { $0.name == name } }

    /// The outermost elements with a name, this one included.
    func all(_ name: String) -> [ConfigurationElement] {
        self.name == name ? [self] : children.flatMap { $0.all(name) }
    }

    /// Parses a file.
    ///
    /// - Returns: the root element.
    /// - Throws: `ResourceError.policyFile` with the line of the error.
    static func parse(_ xml: [UInt8]) throws(ResourceError) -> ConfigurationElement {
        var parser = ConfigurationElementParser(String(decoding: xml, as: UTF8.self))
        guard let root = parser.parse() else {
            throw ResourceError(.policyFile, "the policy file is not valid XML at line \(parser.line)")
        }
        return root
    }
}

/// Reads the text of an XML file from its start to its end.
private struct ConfigurationElementParser {
    /// Deeper files are invalid.
    private static let maxDepth = 100
    private static let entities = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"]

    private let text: String
    private var rest: Substring

    init(_ text: String) {
        self.text = text
        rest = text[...]
        if rest.first == "\u{FEFF}" { rest.removeFirst() }
    }

    /// The line that was reached; 1 is the first.
    var line: Int { text[..<rest.startIndex].count { $0.isNewline } + 1 }

    /// The root element; nil when the file is invalid.
    mutating func parse() -> ConfigurationElement? {
        var (open, root): ([ConfigurationElement], ConfigurationElement?) = ([], nil)
        while !rest.isEmpty {
            guard rest.first == "<" else {
                let content = take(until: "<") ?? takeAll()
                guard let decoded = Self.decoded(content) else { return nil }
                if open.isEmpty, !decoded.allSatisfy(\.isWhitespace) { return nil }
                if !open.isEmpty { open[open.count - 1].text += decoded }
                continue
            }
            if let data = section("<![CDATA[", "]]>") {
                guard let data, !open.isEmpty else { return nil }
                open[open.count - 1].text += data
                continue
            }
            if let skipped = section("<!--", "-->") ?? section("<?", "?>") {
                guard skipped != nil else { return nil }
                continue
            }
            if let type = section("<!DOCTYPE", ">") {
                // A document type with declarations of its own could define entities.
                guard let type, !type.contains("[") else { return nil }
                continue
            }
            guard let tag = section("<", ">"), let tag, root == nil else { return nil }
            var closes = tag.hasPrefix("/")
            if !closes {
                let name = tag.prefix { !$0.isWhitespace && $0 != "/" }
                guard !name.isEmpty, open.count < Self.maxDepth else { return nil }
                open.append(ConfigurationElement(name: String(name)))
                closes = tag.hasSuffix("/")
            } else if open.last?.name != tag.dropFirst().filter({ !$0.isWhitespace }) {
                return nil
            }
            if closes, let element = open.popLast().map(Self.trimmed) {
                if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
            }
        }
        return open.isEmpty ? root : nil
    }

    private static func trimmed(_ element: ConfigurationElement) -> ConfigurationElement {
        var element = element
        let text = element.text.drop(while: \.isWhitespace)
        element.text = String(text[..<(text.lastIndex { !$0.isWhitespace }.map(text.index(after:)) ?? text.startIndex)])
        return element
    }

    /// The content of a section that starts here; nil: no section starts here; `.some(nil)`: it has no end.
    private mutating func section(_ start: String, _ end: String) -> String?? {
        guard rest.hasPrefix(start) else { return nil }
        rest.removeFirst(start.count)
        guard let content = take(until: end) else { return .some(nil) }
        rest.removeFirst(end.count)
        return content
    }

    private mutating func take(until end: String) -> String? {
        guard let range = rest.firstRange(of: end) else { return nil }
        defer { rest = rest[range.lowerBound...] }
        return String(rest[..<range.lowerBound])
    }

    private mutating func takeAll() -> String {
        defer { rest = rest[rest.endIndex...] }
        return String(rest)
    }

    /// A text with its references replaced; nil when one is not known.
    private static func decoded(_ text: String) -> String? {
        var (decoded, rest) = ("", text[...])
        while let start = rest.firstIndex(of: "&") {
            decoded += rest[..<start]
            guard let end = rest[start...].firstIndex(of: ";") else { return nil }
            let name = rest[rest.index(after: start)..<end]
            rest = rest[rest.index(after: end)...]
            if name.hasPrefix("#") {
                let isHex = name.hasPrefix("#x")
                let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10)
                guard let scalar = number.flatMap(UnicodeScalar.init) else { return nil }
                decoded.unicodeScalars.append(scalar)
            } else {
                guard let character = entities[String(name)] else { return nil }
                decoded += character
            }
        }
        return decoded + rest
    }
}
