import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

extension LocalStore {
    /// What `Connect` says of waking the device; nil: the app has never said anything.
    func pushToken() throws(SyncError) -> Mss_Device_V1_PushToken? {
        let row = try access("reading the push token") { db in
            try Row.fetchOne(db, sql: "SELECT push_provider, push_token FROM store WHERE push_token IS NOT NULL")
        }
        guard let row else { return nil }
        return .with {
            $0.provider = Mss_Device_V1_PushProvider(rawValue: row[0]) ?? .unknown
            $0.token = row[1]
        }
    }

    /// Keeps what the app says; an empty token: the device is not to be woken.
    ///
    /// - Returns: whether that is news.
    func setPushToken(_ token: PushToken) throws(SyncError) -> Bool {
        var isNews = false
        try change("storing the push token") { db in
            try db.execute(
                sql: """
                    UPDATE store SET push_provider = :provider, push_token = :token
                    WHERE push_token IS NOT :token OR push_provider IS NOT :provider
                    """, arguments: ["provider": token.provider.rawValue, "token": token.text])
            isNews = db.changesCount > 0
        }
        return isNews
    }
}
