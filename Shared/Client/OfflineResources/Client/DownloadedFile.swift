public import Foundation

/// A file that was downloaded.
public struct DownloadedFile: Sendable, Hashable {
    /// The URI of the resource, relative to the base URL.
    public let uri: String
    public let file: URL
    /// In bytes.
    public let size: Int64
    /// The entity tag of the version; nil when the backend has none. `FileTransfers.upload` takes it as `basedOn`.
    public let etag: String?
    public let contentType: String?
}
