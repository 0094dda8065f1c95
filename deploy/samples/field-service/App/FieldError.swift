/// A command that cannot be executed, with its reason.
struct FieldError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
