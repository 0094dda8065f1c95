import Foundation
import GRDB

/// The database, the cipher and the limit of one transaction.
struct StoreContext {
    let db: Database
    let cipher: (any ResourceCipher)?
    /// The largest size of copies and edits, in bytes.
    let limit: Int
    /// The number of this start of the app.
    let run: Int64

    /// The number of the next stored version.
    func countChange() throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "UPDATE store SET change = change + 1 RETURNING change")) ?? 0
    }

    static func policy(_ data: Data) throws -> EffectivePolicy {
        try JSONDecoder().decode(EffectivePolicy.self, from: data)
    }

    static func data(_ policy: EffectivePolicy) throws -> Data { try JSONEncoder().encode(policy) }

    // MARK: Encryption and space

    func sealed(_ body: [UInt8], _ place: String) throws -> Data {
        Data(try cipher?.seal(body, for: place) ?? body)
    }

    func opened(_ stored: Data, _ place: String) throws -> [UInt8] {
        try cipher?.open([UInt8](stored), for: place) ?? [UInt8](stored)
    }

    /// Encrypts every body and the header fields of edits; they were not encrypted before.
    func reseal(with cipher: any ResourceCipher) throws {
        let columns = [
            ("resource", "id", "body", ""), ("edit", "seq", "body", ""), ("edit", "seq", "headers", "/headers"),
        ]
        for (table, key, column, suffix) in columns {
            for id in try Int64.fetchAll(db, sql: "SELECT \(key) FROM \(table) WHERE \(column) IS NOT NULL") {
                let plain = try Data.fetchOne(
                    db, sql: "SELECT \(column) FROM \(table) WHERE \(key) = ?", arguments: [id])
                let sealed = Data(try cipher.seal([UInt8](plain ?? Data()), for: "\(table)/\(id)\(suffix)"))
                try db.execute(sql: "UPDATE \(table) SET \(column) = ? WHERE \(key) = ?", arguments: [sealed, id])
            }
        }
    }

    /// Whether this number of bytes fits in `maxStoreSize`.
    func hasSpace(for bytes: Int) throws -> Bool {
        let used = try Int.fetchOne(db.cachedStatement(sql: "SELECT used_bytes FROM store")) ?? 0
        return used + bytes <= limit
    }
}
