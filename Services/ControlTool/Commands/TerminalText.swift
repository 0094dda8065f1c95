/// Prints foreign texts on one line: no character in them moves the cursor, ends the line or changes its direction.
enum TerminalText {
    /// The text with every control, format and separator character as `\u{…}`.
    static func of(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                line += "\\u{\(String(scalar.value, radix: 16))}"
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}
