/// A JSON value as far as the API looks into it; objects and arrays stay text.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// The number as it is spelt.
    case number(String)
    case string(String)
    /// An object or array: its text without white space between tokens, everything else as it was spelt.
    case structure([UInt8])
}
