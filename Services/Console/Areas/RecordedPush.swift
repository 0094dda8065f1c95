import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// The push that a record of "create sync" tells of, or of the start of a roll-out: its first stage.
struct RecordedPush {
    let name: Mss_Bus_V1_OplogName

    /// Nil: the record tells of none.
    init?(_ record: OperationRecord) {
        struct Members: Decodable {
            let target: String?
            let thirdMsgId: String
        }
        guard record.action == .createSync || record.action == .startRollout, let after = record.after,
            let members = try? JSONDecoder().decode(Members.self, from: Data(after.utf8))
        else { return nil }
        name = .with {
            $0.instanceID = record.instanceID.text
            $0.bizType = record.subject
            $0.linkToken = members.target ?? ""
            let id = ThirdMessageID(members.thirdMsgId)
            $0.thirdMessageID = (record.action == .startRollout ? RolloutPlan(id: id).stageID(1) : id).text
        }
    }
}
