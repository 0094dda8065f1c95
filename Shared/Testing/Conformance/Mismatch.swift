/// The implementation violates the specification.
struct Mismatch: Error, Hashable, CustomStringConvertible {
    /// The specified behaviour.
    let expected: String
    /// The observed behaviour.
    let seen: String

    var description: String { "expected \(expected); seen \(seen)" }

    /// Throws `Mismatch` unless the condition holds.
    static func unless(_ condition: Bool, _ expected: String, seen: @autoclosure () -> String) throws(Mismatch) {
        if !condition { throw Mismatch(expected: expected, seen: seen()) }
    }
}
