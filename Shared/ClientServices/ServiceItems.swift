import Foundation
import GRDB
import MobileSync

/// The items of a `ServiceStore` within one transaction.
struct ServiceItems {
    /// What nobody in particular owns.
    static let common = ""

    let db: Database
    let cipher: StoreCipher?

    /// The body under a key; nil: there is none.
    func body(_ area: ServiceArea, owner: String = common, key: String) throws -> Data? {
        let stored = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT body FROM item WHERE area = ? AND owner = ? AND name = ?"),
            arguments: [area.rawValue, owner, key])
        return try stored.map { try opened($0, Self.place(area.rawValue, owner, key)) }
    }

    /// The items of an owner in the order of their keys' bytes.
    ///
    /// - Parameter limit: as many as that, from the first on; below 0: all.
    func all(
        _ area: ServiceArea, owner: String = common, limit: Int = -1
    ) throws -> [(key: String, body: Data)] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT name, body FROM item WHERE area = ? AND owner = ? ORDER BY name LIMIT ?"),
            arguments: [area.rawValue, owner, limit]
        ).map { row in
            let key: String = row[0]
            return (key, try opened(row[1], Self.place(area.rawValue, owner, key)))
        }
    }

    /// Keys of an owner in the order of their bytes, as far as they begin so.
    func keys(_ area: ServiceArea, owner: String = common, prefix: String = "") throws -> [String] {
        try String.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT name FROM item
                    WHERE area = ? AND owner = ? AND substr(name, 1, length(?)) = ? ORDER BY name
                    """), arguments: [area.rawValue, owner, prefix, prefix])
    }

    /// Writes one item, in place of the one before.
    func put(_ body: Data, _ area: ServiceArea, owner: String = common, key: String) throws {
        let stored = try cipher?.seal(body, for: Self.place(area.rawValue, owner, key)) ?? body
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO item (area, owner, name, body) VALUES (?, ?, ?, ?)")
            .execute(arguments: [area.rawValue, owner, key, stored])
    }

    /// Removes one item; what is not there is no error.
    func remove(_ area: ServiceArea, owner: String = common, key: String) throws {
        try db.cachedStatement(sql: "DELETE FROM item WHERE area = ? AND owner = ? AND name = ?")
            .execute(arguments: [area.rawValue, owner, key])
    }

    /// Writes every body anew, in another form.
    func rewrite(with new: StoreCipher?) throws {
        let update = try db.makeStatement(sql: "UPDATE item SET body = ? WHERE area = ? AND owner = ? AND name = ?")
        for row in try Row.fetchAll(db, sql: "SELECT area, owner, name FROM item") {
            let (area, owner, key): (String, String, String) = (row[0], row[1], row[2])
            let stored = try Data.fetchOne(
                db.cachedStatement(sql: "SELECT body FROM item WHERE area = ? AND owner = ? AND name = ?"),
                arguments: [area, owner, key])
            guard let stored else { continue }
            let place = Self.place(area, owner, key)
            let body = try opened(stored, place)
            try update.execute(arguments: [try new?.seal(body, for: place) ?? body, area, owner, key])
        }
    }

    private func opened(_ stored: Data, _ place: String) throws -> Data {
        try cipher?.open(stored, for: place) ?? stored
    }

    /// No part has a NUL, so no two items share a place.
    private static func place(_ area: String, _ owner: String, _ key: String) -> String {
        "\(area)\0\(owner)\0\(key)"
    }
}
