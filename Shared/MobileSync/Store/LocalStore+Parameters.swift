import DeviceProtocol
import GRDB
import SyncModel

/// Subscription parameters that are kept here: the client's own, and what is known of the server's.
extension LocalStore {
    /// A value with where it is kept.
    struct KeptParameter: Hashable, Sendable {
        var parameter: DeviceParameter
        var isServer: Bool
        /// Of the server's: it has not said yet that it keeps it.
        var isPending: Bool
    }

    /// The values of a user; empty: of the device while nobody is bound. A pending one without a value is taken away.
    func parameters(ofUser userID: String?) throws(SyncError) -> [KeptParameter] {
        try access("reading parameters") { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT biz_type, name, value, is_server, is_pending FROM parameter WHERE user_id = ?
                    ORDER BY biz_type, name, is_server
                    """, arguments: [userID ?? ""]
            ).map { row in
                KeptParameter(
                    parameter: DeviceParameter(
                        bizType: BizType(row[0]), name: row[1], value: SubscriptionValue(json: row[2])),
                    isServer: row[3], isPending: row[4])
            }
        }
    }

    /// Keeps a value, or takes it away; one for the server is pending until that has answered.
    func setParameter(_ parameter: DeviceParameter, isServer: Bool, ofUser userID: String?) throws(SyncError) {
        try change("keeping a parameter") { db in
            if parameter.value == nil, !isServer {
                try db.execute(
                    sql: "DELETE FROM parameter WHERE user_id = ? AND biz_type = ? AND name = ? AND NOT is_server",
                    arguments: [userID ?? "", parameter.bizType.text, parameter.name])
                return
            }
            try db.execute(
                sql: "INSERT OR REPLACE INTO parameter VALUES (?, ?, ?, ?, ?, ?)",
                arguments: [
                    userID ?? "", parameter.bizType.text, parameter.name, isServer, parameter.value?.json ?? "",
                    isServer,
                ])
        }
    }

    /// The service has answered these: it keeps them, or never will. What was set anew meanwhile stays pending.
    func answered(_ parameters: [DeviceParameter], isKept: Bool, ofUser userID: String) throws(SyncError) {
        try change("noting kept parameters") { db in
            for parameter in parameters {
                let condition = "user_id = ? AND biz_type = ? AND name = ? AND is_server AND value = ?"
                let arguments: StatementArguments = [
                    userID, parameter.bizType.text, parameter.name, parameter.value?.json ?? "",
                ]
                let isGone = !isKept || parameter.value == nil
                try db.execute(
                    sql: isGone
                        ? "DELETE FROM parameter WHERE \(condition)"
                        : "UPDATE parameter SET is_pending = 0 WHERE \(condition)", arguments: arguments)
            }
        }
    }

    /// What the server keeps for the user, all of it; what is pending here stays.
    func learnServerParameters(_ parameters: [Mss_Device_V1_Parameter], ofUser userID: String) throws(SyncError) {
        try change("noting the server's parameters") { db in
            try db.execute(
                sql: "DELETE FROM parameter WHERE user_id = ? AND is_server AND NOT is_pending", arguments: [userID])
            for parameter in parameters {
                try db.execute(
                    sql: "INSERT OR IGNORE INTO parameter VALUES (?, ?, ?, 1, ?, 0)",
                    arguments: [userID, parameter.bizType, parameter.name, parameter.value])
            }
        }
    }
}
