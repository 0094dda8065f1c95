/// Something that a person asked for and that cannot be done, in words.
struct FieldError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
