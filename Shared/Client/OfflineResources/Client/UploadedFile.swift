/// A file that the backend has.
public struct UploadedFile: Sendable, Hashable {
    /// The URI of the resource, relative to the base URL: as the backend has named it, or as given.
    public let uri: String
    /// The entity tag of the new version; nil when the response had none.
    public let etag: String?
}
