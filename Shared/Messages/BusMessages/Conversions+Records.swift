import Foundation
import SwiftProtobuf
package import SyncModel

// Conversions of audit records and of requests for them.

extension SyncModel.RecordFilter {
    /// Converts a filter of the bus.
    package init(bus: Mss_Bus_V1_RecordsRequest) {
        self.init(
            instanceID: bus.instanceID.isEmpty ? nil : InstanceID(bus.instanceID),
            actor: bus.actor.isEmpty ? nil : bus.actor,
            actionCode: bus.action == 0 ? nil : Int16(clamping: bus.action),
            from: bus.fromMs == 0 ? nil : WallTime(milliseconds: bus.fromMs),
            to: bus.toMs == 0 ? nil : WallTime(milliseconds: bus.toMs))
    }

    /// A request with this filter as a bus message.
    package var bus: Mss_Bus_V1_RecordsRequest {
        .with {
            $0.instanceID = instanceID?.text ?? ""
            $0.actor = actor ?? ""
            $0.action = UInt32(clamping: actionCode ?? 0)
            $0.fromMs = from?.milliseconds ?? 0
            $0.toMs = to?.milliseconds ?? 0
        }
    }
}

extension SyncModel.OperationRecord {
    /// Converts a record of the bus.
    package init(bus: Mss_Bus_V1_OperationRecord) {
        self.init(
            number: bus.number, recordedAtMicroseconds: bus.recordedAtUs, actor: bus.actor, source: bus.source,
            actionCode: Int16(clamping: bus.action), instanceID: InstanceID(bus.instanceID), subject: bus.subject,
            before: bus.hasBefore ? bus.before : nil, after: bus.hasAfter ? bus.after : nil,
            previousHash: [UInt8](bus.previousHash), hash: [UInt8](bus.hash))
    }

    /// The record as a bus message.
    package var bus: Mss_Bus_V1_OperationRecord {
        .with {
            $0.number = number
            $0.recordedAtUs = recordedAtMicroseconds
            $0.actor = actor
            $0.source = source
            $0.action = UInt32(clamping: actionCode)
            $0.instanceID = instanceID.text
            $0.subject = subject
            if let before { $0.before = before }
            if let after { $0.after = after }
            $0.previousHash = Data(previousHash)
            $0.hash = Data(hash)
        }
    }
}

extension SyncModel.RecordPage {
    /// Converts a page of the bus.
    package init(bus: Mss_Bus_V1_RecordsReply) {
        self.init(
            records: bus.records.map { SyncModel.OperationRecord(bus: $0) }, hasMore: bus.more,
            head: RecordHead(number: bus.headNumber, hash: [UInt8](bus.headHash)))
    }

    /// The page as a bus message.
    package var bus: Mss_Bus_V1_RecordsReply {
        .with {
            $0.records = records.map(\.bus)
            $0.more = hasMore
            $0.headNumber = head.number
            $0.headHash = Data(head.hash)
        }
    }
}

extension Mss_Bus_V1_ControlCommand {
    /// The actor of the command.
    package var by: OperationActor {
        get { OperationActor(actor, from: source) }
        set { (actor, source) = (newValue.name, newValue.source) }
    }
}

extension Mss_Bus_V1_OperationCommand {
    /// The actor of the command.
    package var by: OperationActor {
        get { OperationActor(actor, from: source) }
        set { (actor, source) = (newValue.name, newValue.source) }
    }
}
