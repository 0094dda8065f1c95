/// A fetched resource with its body as a value of the app's type.
public struct TypedResource<Value: Sendable>: Sendable {
    /// The decoded body, including local edits.
    public let value: Value
    /// The resource with its URI, flags and policies.
    public let resource: Resource
}
