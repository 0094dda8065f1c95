/// The implementation lacks the feature, or an option that the case needs is missing.
struct NotSupported: Error, Hashable, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
