import BusMessages
import Foundation
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

// Audit records of pushes by operators (C9). Pushes of backends are not recorded.
extension BackendQueryHandler {
    /// The members of a push in its audit record, without the payload.
    private struct Push: Encodable {
        /// A nil value means: a global push.
        let target: String?
        let thirdMsgId: String
        let osType: String?
        let appMinVersion: String?
        let appMaxVersion: String?
        /// Milliseconds since 1970; nil: as long as the instance keeps it.
        let validTimeEnd: Int64?
        let conversation: String?
    }

    /// Writes the audit record of a push before an operator makes it. A repeated command writes a second record.
    func record(
        _ push: Mss_Bus_V1_RecordPush, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let system: String? =
            switch push.operatingSystem {
            case .ios: "iOS"
            case .android: "Android"
            default: nil
            }
        let said = Push(
            target: push.oplog.linkToken.isEmpty ? nil : push.oplog.linkToken, thirdMsgId: push.oplog.thirdMessageID,
            osType: system,
            appMinVersion: push.minimumVersion.isEmpty ? nil : push.minimumVersion,
            appMaxVersion: push.maximumVersion.isEmpty ? nil : push.maximumVersion,
            validTimeEnd: push.validUntilMs == 0 ? nil : push.validUntilMs,
            conversation: push.conversation.isEmpty ? nil : push.conversation)
        let content = RecordStore.Push(
            bizType: BizType(push.oplog.bizType), target: push.oplog.linkToken,
            thirdMessageID: ThirdMessageID(push.oplog.thirdMessageID), payload: [UInt8](push.payload),
            isBinary: push.binary)
        let members = (try? JSONEncoder().encode(said)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        let query = RecordStore.add(content, in: InstanceID(push.oplog.instanceID), by: actor, members: members)
        let number = try connection.run(query, within: Self.limit)
        return .with { $0.record.number = number }
    }
}
