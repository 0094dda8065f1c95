import Foundation
import MobileSync

/// The format of oplogs for `mssctl listen`.
struct OplogLine: Sendable {
    let isJSON: Bool

    /// One line with a line feed. JSON members: bizType, oplogId (number), payload, binary (only if true; then the
    /// payload is Base64), thirdMsgId (absent if unknown), conversation (absent if none), createdAt (ms since 1970),
    /// attempt (only above 1), replay (only if true), recalls (only for a tombstone: the id of the recalled oplog).
    func text(of oplog: SyncOplog) -> String {
        let payload = oplog.text ?? Data(oplog.payload).base64EncodedString()
        guard isJSON else {
            let time = Date(timeIntervalSince1970: Double(oplog.createdAt) / 1_000).formatted(.iso8601)
            // One line per oplog, also if the payload has line breaks.
            let line = payload.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").replacing("\r", with: "\\r")
            let words = ["\(time)", oplog.bizType, "\(oplog.oplogID)"] + Self.remarks(oplog) + [line]
            return words.filter { !$0.isEmpty }.joined(separator: " ") + "\n"
        }
        var members = [
            "\"bizType\":\(Self.quoted(oplog.bizType))", "\"oplogId\":\(oplog.oplogID)",
            "\"payload\":\(Self.quoted(payload))",
        ]
        if oplog.isBinary { members.append("\"binary\":true") }
        if let id = oplog.thirdMessageID { members.append("\"thirdMsgId\":\(Self.quoted(id))") }
        if let name = oplog.conversation { members.append("\"conversation\":\(Self.quoted(name))") }
        members.append("\"createdAt\":\(oplog.createdAt)")
        if oplog.attempt > 1 { members.append("\"attempt\":\(oplog.attempt)") }
        if oplog.isReplay { members.append("\"replay\":true") }
        if let recalls = oplog.recalls { members.append("\"recalls\":\(recalls)") }
        return "{\(members.joined(separator: ","))}\n"
    }

    /// Remarks on a tombstone, a replay or a resend, for the text format.
    private static func remarks(_ oplog: SyncOplog) -> [String] {
        [
            oplog.recalls.map { "(recalled \($0))" }, oplog.isReplay ? "(replay)" : nil,
            oplog.attempt > 1 ? "(attempt \(oplog.attempt))" : nil,
        ].compactMap { $0 }
    }

    /// A JSON string (RFC 8259 §7).
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\0"..<" ":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
