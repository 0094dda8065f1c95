/// Both versions of a resource that was edited here and there.
public struct ResourceConflict: Sendable, Hashable {
    public let uri: String
    /// Nil: deleted here.
    public let local: [UInt8]?
    /// Nil: deleted there.
    public let server: [UInt8]?
    /// Of the service's version.
    public let serverETag: String?
}
