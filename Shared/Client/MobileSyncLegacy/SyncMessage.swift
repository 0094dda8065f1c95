import Foundation
import MobileSync

/// A batch of one Sync ID in the form of the guide. One confirmation confirms the whole batch (K6).
public struct SyncMessage: Sendable {
    /// The user of the data; nil for device data.
    public let userId: String?
    /// The Sync ID.
    public let biz: String
    /// The highest oplog id of the batch, as text.
    public let id: String
    /// Whether the local store already has more data of this channel.
    public let hasMore: Bool
    /// The data as JSON text: an array with one object for each oplog, in ascending order of ids.
    ///
    /// Members: `pl` is the payload as text, or as Base64 when `isB` is present and 1. `mk` is the oplog id, and `mct`
    /// is the time when the service accepted the push, in milliseconds since 1970; both are numbers. Two members are
    /// not in the guide: `recalls` is the id of an earlier oplog that the backend has recalled, with an empty `pl`;
    /// `isReplay` is 1 when the app may have had the oplog before (`SyncOplog.isReplay`).
    public let msgData: String
    /// The text of `msgData`, under the name of the iOS API.
    public var op: String { msgData }

    /// The client that handed the batch out. The confirmation goes to the same client.
    let client: SyncClient
    let batch: SyncBatch

    init(_ batch: SyncBatch, of client: SyncClient) {
        userId = batch.userID
        biz = batch.bizType
        id = batch.oplogs.map(\.oplogID).max().map { "\($0)" } ?? ""
        hasMore = batch.hasMore
        msgData = "[\(batch.oplogs.map(Self.json).joined(separator: ","))]"
        self.client = client
        self.batch = batch
    }

    /// Built by hand, because encoders do not keep the order of members.
    static func json(_ oplog: SyncOplog) -> String {
        var members = ["\"pl\":\(quoted(oplog.text ?? Data(oplog.payload).base64EncodedString()))"]
        if oplog.isBinary { members.append("\"isB\":1") }
        members += ["\"mk\":\(oplog.oplogID)", "\"mct\":\(oplog.createdAt)"]
        if let recalled = oplog.recalls { members.append("\"recalls\":\(recalled)") }
        if oplog.isReplay { members.append("\"isReplay\":1") }
        return "{\(members.joined(separator: ","))}"
    }

    /// Returns a JSON string (RFC 8259 §7).
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

extension SyncMessage {
    /// The key of the message itself in a notification, for `responseMessageNotify`.
    private static let key = "syncMessage"

    /// The content of a notification: `op` as in the guide, and the other members of the message.
    var userInfo: [AnyHashable: Any] {
        var info: [AnyHashable: Any] = ["op": op, "biz": biz, "id": id, "hasMore": hasMore, Self.key: self]
        if let userId { info["userId"] = userId }
        return info
    }

    /// Returns the message of a notification; nil for another notification.
    init?(userInfo: [AnyHashable: Any]) {
        guard let message = userInfo[Self.key] as? SyncMessage else { return nil }
        self = message
    }
}
