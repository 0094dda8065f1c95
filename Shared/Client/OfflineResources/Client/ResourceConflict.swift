/// Both versions of a resource with a conflict.
public struct ResourceConflict: Sendable, Hashable {
    public let uri: String
    /// The local version; nil when it is deleted here.
    public let local: [UInt8]?
    /// The backend's version; nil when the backend has none.
    public let server: [UInt8]?
    /// The entity tag of the backend's version.
    public let serverETag: String?
}
