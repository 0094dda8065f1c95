/// The implementation did something else than the text says.
struct Mismatch: Error, Hashable, CustomStringConvertible {
    /// What the text asks for.
    let expected: String
    /// What was observed instead.
    let seen: String

    var description: String { "expected \(expected); seen \(seen)" }

    /// Fails unless the condition holds.
    static func unless(_ condition: Bool, _ expected: String, seen: @autoclosure () -> String) throws(Mismatch) {
        if !condition { throw Mismatch(expected: expected, seen: seen()) }
    }
}
