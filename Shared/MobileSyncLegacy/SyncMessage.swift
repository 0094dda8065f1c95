import Foundation
import MobileSync

/// A batch of one Sync ID as the guide shapes it; confirming it confirms all of it (spec K6).
public struct SyncMessage: Sendable {
    /// The user that it is for; nil for device data.
    public let userId: String?
    /// The Sync ID.
    public let biz: String
    /// The largest oplog id of the batch, as text.
    public let id: String
    /// Another batch follows.
    public let hasMore: Bool
    /// The data: a JSON text, an array with an object for each oplog in ascending id.
    ///
    /// Members: `pl` the payload as text, or as Base64 when `isB` is there, which is then 1; `mk` the oplog id and `mct`
    /// when the service accepted it, in milliseconds since 1970, both as numbers. Not in the guide: `recalls`, the id
    /// of an earlier oplog that the backend has taken back (`pl` is empty then), and `isReplay`, 1 when somebody had
    /// the service send it once more.
    public let msgData: String
    /// `msgData` under the iOS face's name.
    public var op: String { msgData }

    /// The client that handed it out, which is also the one to confirm it to.
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

    /// Built by hand, because encoders do not keep an order of members.
    static func json(_ oplog: SyncOplog) -> String {
        var members = ["\"pl\":\(quoted(oplog.text ?? Data(oplog.payload).base64EncodedString()))"]
        if oplog.isBinary { members.append("\"isB\":1") }
        members += ["\"mk\":\(oplog.oplogID)", "\"mct\":\(oplog.createdAt)"]
        if let recalled = oplog.recalls { members.append("\"recalls\":\(recalled)") }
        if oplog.isReplay { members.append("\"isReplay\":1") }
        return "{\(members.joined(separator: ","))}"
    }

    /// A JSON string (RFC 8259 §7).
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
    /// Under which key a notification carries the message itself, for `responseMessageNotify`.
    private static let key = "syncMessage"

    /// What the iOS face's notification carries: `op` as the guide has it, and the message's other members.
    var userInfo: [AnyHashable: Any] {
        var info: [AnyHashable: Any] = ["op": op, "biz": biz, "id": id, "hasMore": hasMore, Self.key: self]
        if let userId { info["userId"] = userId }
        return info
    }

    /// The message of a notification; nil when it is not one of ours.
    init?(userInfo: [AnyHashable: Any]) {
        guard let message = userInfo[Self.key] as? SyncMessage else { return nil }
        self = message
    }
}
