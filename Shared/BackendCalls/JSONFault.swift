/// Why a body is no JSON object that the API reads.
package enum JSONFault: Error, Hashable, Sendable {
    case invalidUTF8
    case notAnObject
    /// Broken syntax, at this byte.
    case malformed(at: Int)
    case duplicateMember
    case tooDeep
    /// `\uD800` to `\uDFFF` without its other half.
    case loneSurrogate

    /// What to tell the caller.
    package var detail: String {
        switch self {
        case .invalidUTF8: "The body is not valid UTF-8; encode it in UTF-8."
        case .notAnObject: "The body is not a JSON object; send one object with the parameters as members."
        case .malformed(let position): "The body is not valid JSON at byte \(position); correct the syntax there."
        case .duplicateMember: "A member name occurs twice in one JSON object; send each parameter once."
        case .tooDeep:
            "The JSON is nested deeper than \(JSONObjectReader.maximumDepth) levels; nest less or send it as a string."
        case .loneSurrogate: "A \\u escape is half of a surrogate pair; send both halves or the character itself."
        }
    }
}
