/// The implementation lacks what the case is about, or the run was not given what it needs.
struct NotSupported: Error, Hashable, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
