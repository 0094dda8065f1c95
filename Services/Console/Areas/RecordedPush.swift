import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// The push that a record of "create sync" tells of.
struct RecordedPush {
    let name: Mss_Bus_V1_OplogName

    /// Nil: the record tells of none.
    init?(_ record: OperationRecord) {
        struct Members: Decodable {
            let target: String?
            let thirdMsgId: String
        }
        guard let after = record.after,
            let members = try? JSONDecoder().decode(Members.self, from: Data(after.utf8))
        else { return nil }
        name = .with {
            $0.instanceID = record.instanceID.text
            $0.bizType = record.subject
            $0.linkToken = members.target ?? ""
            $0.thirdMessageID = members.thirdMsgId
        }
    }
}
