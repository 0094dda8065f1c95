import DeviceProtocol
import GRDB
import SyncModel

/// The subscription parameters in a local store: those of the client and the known ones of the server. Not thread-safe.
struct LocalParameters {
    /// A value and the place where it is kept.
    struct KeptParameter: Hashable, Sendable {
        var parameter: DeviceParameter
        var isServer: Bool
        /// For a value of the server: the server has not confirmed it yet.
        var isPending: Bool
    }

    let file: LocalStoreFile

    /// Returns the values of a user, or of the device when the user is nil. A pending parameter without a value is a
    /// removal.
    func all(ofUser userID: String?) throws(SyncError) -> [KeptParameter] {
        try file.access("reading parameters") { db in
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

    /// Stores or removes a value. A value for the server is pending until the server replies.
    func set(_ parameter: DeviceParameter, isServer: Bool, ofUser userID: String?) throws(SyncError) {
        try file.change("storing a parameter") { db in
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

    /// Applies a reply of the service, which stores these values or never will. A value that has changed meanwhile
    /// stays pending.
    func answered(_ parameters: [DeviceParameter], isKept: Bool, ofUser userID: String) throws(SyncError) {
        try file.change("applying a reply about parameters") { db in
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

    /// Replaces the known values of the server with all values that it has for the user. Pending values stay.
    func replaceServerValues(with parameters: [Mss_Device_V1_Parameter], ofUser userID: String) throws(SyncError) {
        try file.change("storing the server's parameters") { db in
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
