import Mustache

/// HTML escaping that looks at every Unicode scalar by itself.
///
/// The library's own looks at Swift's characters. A combining mark, or one that joins with what follows it, makes one
/// character with a `<` or a quotation mark, which would then go out as it is (reliability SEC13).
struct ScalarEscaping: MustacheContentType {
    /// What every template begins with; a part that is included begins anew.
    static let pragma = "{{% CONTENT_TYPE:SCALARS }}"

    /// Makes it known to the library under its name.
    static func register() { MustacheContentTypes.register(ScalarEscaping(), named: "SCALARS") }

    func escapeText(_ text: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "<": escaped.append(contentsOf: "&lt;".unicodeScalars)
            case ">": escaped.append(contentsOf: "&gt;".unicodeScalars)
            case "&": escaped.append(contentsOf: "&amp;".unicodeScalars)
            case "\"": escaped.append(contentsOf: "&quot;".unicodeScalars)
            case "'": escaped.append(contentsOf: "&#39;".unicodeScalars)
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }
}
