/// Who did something, and from where, for the operation records (spec C9, reliability SEC15).
package struct OperationActor: Hashable, Sendable, ExpressibleByStringInterpolation {
    /// Who, and through what: `console:alice`, `mssctl:root`; backends are `api`.
    package var name: String
    /// The address that a person's browser came from, or the host of the command line; empty: not known.
    package var source: String

    package init(_ name: String, from source: String = "") {
        self.name = name
        self.source = source
    }

    package init(stringLiteral name: String) { self.init(name) }

    /// Whether it is a person at the console or the command line: only what people do is recorded, not what backends
    /// call (spec C9).
    package var isPerson: Bool { name.hasPrefix("console:") || name.hasPrefix("mssctl:") }
}
