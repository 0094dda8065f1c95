import Foundation
import GRDB
import MobileSync

/// The transfers of files that can be resumed.
struct FileTransferTable {
    let context: StoreContext

    enum Direction: String, Sendable { case download, upload }

    /// A download whose first part is on the disk.
    struct Download: Sendable, Hashable {
        /// The strong entity tag of the version that the part belongs to.
        let etag: String
        /// The path of the part.
        let part: String
        /// The size of the whole file in bytes; nil: not known.
        let total: Int64?
        /// The bytes that are on the disk.
        var offset: Int64
    }

    /// An upload that the backend has accepted a part of.
    struct Upload: Sendable, Hashable {
        /// The URI that accepts the rest.
        let place: ResourceURI
        /// The file as it was when the upload began.
        let file: FileFingerprint
        let contentType: String
        /// `If-Match` of the upload; nil: any version is overwritten.
        let condition: String?
    }

    /// A download of a resource; nil when none can be resumed.
    func download(_ uri: ResourceURI, owner: String) throws -> Download? {
        guard let row = try row(.download, uri, owner: owner), let etag = row["etag"] as String?,
            let part = row["part"] as String?
        else { return nil }
        return Download(etag: etag, part: part, total: row["total"], offset: row["offset"] ?? 0)
    }

    /// An upload of a resource; nil when none can be resumed.
    func upload(_ uri: ResourceURI, owner: String) throws -> Upload? {
        guard let row = try row(.upload, uri, owner: owner), let place = row["upload_uri"] as String? else {
            return nil
        }
        return Upload(
            place: try ResourceURI(place),
            file: FileFingerprint(size: row["total"] ?? 0, modifiedAt: Date(milliseconds: row["modified_at_ms"] ?? 0)),
            contentType: row["content_type"] ?? "", condition: row["etag"])
    }

    private func row(_ direction: Direction, _ uri: ResourceURI, owner: String) throws -> Row? {
        try Row.fetchOne(
            context.db, sql: "SELECT * FROM transfer WHERE owner = ? AND direction = ? AND uri = ?",
            arguments: [owner, direction.rawValue, uri.description])
    }

    func store(_ download: Download, of uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: """
                INSERT OR REPLACE INTO transfer (owner, direction, uri, etag, part, total, offset)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                owner, Direction.download.rawValue, uri.description, download.etag, download.part, download.total,
                download.offset,
            ])
    }

    func store(_ upload: Upload, of uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: """
                INSERT OR REPLACE INTO transfer (
                    owner, direction, uri, etag, total, modified_at_ms, upload_uri, content_type)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                owner, Direction.upload.rawValue, uri.description, upload.condition, upload.file.size,
                upload.file.modifiedAt.milliseconds, upload.place.description, upload.contentType,
            ])
    }

    /// Deletes the downloads whose part is at a path: another download writes there from its beginning.
    func removeDownloads(into part: String) throws {
        try context.db.execute(
            sql: "DELETE FROM transfer WHERE direction = ? AND part = ?",
            arguments: [Direction.download.rawValue, part])
    }

    /// Deletes a transfer: it has ended, or cannot be resumed.
    func remove(_ direction: Direction, _ uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: "DELETE FROM transfer WHERE owner = ? AND direction = ? AND uri = ?",
            arguments: [owner, direction.rawValue, uri.description])
    }
}
