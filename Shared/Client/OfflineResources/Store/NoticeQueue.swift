import GRDB

/// The answered edits that the app has not been notified of.
struct NoticeQueue {
    let context: StoreContext

    /// Adds a notice of an answered edit.
    func add(_ uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: "INSERT INTO notice (owner, uri) VALUES (?, ?)", arguments: [owner, uri.description])
    }

    /// Answered edits that the app has not been notified of, in order.
    func all(owner: String) throws -> [(seq: Int64, uri: ResourceURI)] {
        try Row.fetchAll(
            context.db, sql: "SELECT seq, uri FROM notice WHERE owner = ? ORDER BY seq", arguments: [owner]
        )
        .map { row in (row[0], try ResourceURI(row[1])) }
    }

    /// Deletes a notice after the app was notified.
    func delete(_ seq: Int64) throws {
        try context.db.execute(sql: "DELETE FROM notice WHERE seq = ?", arguments: [seq])
    }
}
