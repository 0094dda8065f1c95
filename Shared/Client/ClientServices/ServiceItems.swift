import Foundation
import GRDB
import MobileSync

/// The items of a `ServiceStore` within one transaction.
struct ServiceItems {
    /// The owner of items that belong to no user.
    static let common = ""

    let db: Database
    let cipher: StoreCipher?

    /// The body of a key; nil when there is none.
    func body(_ area: ServiceArea, owner: String = common, key: String) throws -> Data? {
        let stored = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT body FROM item WHERE area = ? AND owner = ? AND name = ?"),
            arguments: [area.rawValue, owner, key])
        return try stored.map { try opened($0, Self.place(area.rawValue, owner, key)) }
    }

    /// The items of an owner, sorted by the bytes of their keys.
    ///
    /// - Parameter limit: the largest number of items; below 0: all.
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

    /// The keys of an owner that start with a prefix, sorted by their bytes.
    func keys(_ area: ServiceArea, owner: String = common, prefix: String = "") throws -> [String] {
        try String.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT name FROM item
                    WHERE area = ? AND owner = ? AND substr(name, 1, length(?)) = ? ORDER BY name
                    """), arguments: [area.rawValue, owner, prefix, prefix])
    }

    /// Inserts or replaces one item.
    func put(_ body: Data, _ area: ServiceArea, owner: String = common, key: String) throws {
        let stored = try cipher?.seal(body, for: Self.place(area.rawValue, owner, key)) ?? body
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO item (area, owner, name, body) VALUES (?, ?, ?, ?)")
            .execute(arguments: [area.rawValue, owner, key, stored])
    }

    /// Removes one item. A missing item is not an error.
    func remove(_ area: ServiceArea, owner: String = common, key: String) throws {
        try db.cachedStatement(sql: "DELETE FROM item WHERE area = ? AND owner = ? AND name = ?")
            .execute(arguments: [area.rawValue, owner, key])
    }

    /// Encrypts every body with another key; nil: decrypts it.
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

    /// The authenticated context of a body. No part contains NUL, so no two items have the same context.
    private static func place(_ area: String, _ owner: String, _ key: String) -> String {
        "\(area)\0\(owner)\0\(key)"
    }
}
