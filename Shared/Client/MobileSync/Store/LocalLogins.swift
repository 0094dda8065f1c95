import Foundation
import GRDB

/// The last good logins of the users, for logins without a network. Not thread-safe.
final class LocalLogins {
    /// The number of wrong passwords in a row after which only an online login helps.
    static let mostAttempts = 10

    private let file: LocalStoreFile
    /// The login that is stored when the gateway accepts its bind.
    private var pending: (user: BoundUser, seal: PasswordSeal)?

    init(file: LocalStoreFile) { self.file = file }

    /// Prepares a login. It replaces one that the gateway has not answered.
    func prepare(_ seal: PasswordSeal, of user: BoundUser) { pending = (user, seal) }

    /// Whether the login of this bind is prepared and not stored.
    func isAwaited(_ user: BoundUser) -> Bool { pending?.user == user }

    /// Stores the prepared login when the accepted bind is its bind.
    func bound(_ user: BoundUser) throws(SyncError) {
        guard let (awaited, seal) = pending, awaited == user else { return }
        try file.change("storing a login") { db in
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO login (user_id, salt, rounds, sealed_session) VALUES (?, ?, ?, ?)
                    """, arguments: [user.userID, Data(seal.salt), seal.rounds, Data(seal.sealedSession)])
        }
        pending = nil
    }

    /// Counts an attempt, and returns the user's last good login.
    ///
    /// - Returns: nil when there is none.
    func beginAttempt(of userID: String) throws(SyncError) -> PasswordSeal? {
        var seal: PasswordSeal?
        try file.change("counting a login") { db in
            try db.execute(
                sql: "DELETE FROM login WHERE user_id = ? AND failed_attempts >= ?",
                arguments: [userID, Self.mostAttempts])
            let row = try Row.fetchOne(
                db,
                sql: """
                    UPDATE login SET failed_attempts = failed_attempts + 1 WHERE user_id = ?
                    RETURNING salt, rounds, sealed_session
                    """, arguments: [userID])
            seal = row.map { row in
                let (salt, session): (Data, Data) = (row[0], row[2])
                return PasswordSeal(salt: [UInt8](salt), rounds: row[1], sealedSession: [UInt8](session))
            }
        }
        return seal
    }

    /// Takes back an attempt that could not check the password.
    func withdrawAttempt(of userID: String) throws(SyncError) {
        try file.change("counting a login") { db in
            try db.execute(
                sql: "UPDATE login SET failed_attempts = max(0, failed_attempts - 1) WHERE user_id = ?",
                arguments: [userID])
        }
    }

    /// Records that the password was right.
    func succeeded(_ userID: String) throws(SyncError) {
        try file.change("storing a login") { db in
            try db.execute(sql: "UPDATE login SET failed_attempts = 0 WHERE user_id = ?", arguments: [userID])
        }
    }
}
