import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// Operations of a load run's device that the service does not have for certain; pure. One frame at a time is on its
/// way, as DeviceProtocol.md says; what waits meanwhile goes with the next.
struct LoadOutbox {
    private var waiting: [Mss_Device_V1_DeviceOperation] = []
    private var sent: [Mss_Device_V1_DeviceOperation] = []
    private var number: UInt32 = 0
    private var isUnderWay = false

    /// The user has done something.
    mutating func add(_ operation: Mss_Device_V1_DeviceOperation) { waiting.append(operation) }

    /// The next frame; nil: there is none to send, or one is under way.
    mutating func next() -> Mss_Device_V1_Packet? {
        guard !isUnderWay else { return nil }
        if sent.isEmpty {
            sent = Array(waiting.prefix(Limits.frameOperations))
            waiting.removeFirst(sent.count)
        }
        guard !sent.isEmpty else { return nil }
        isUnderWay = true
        number += 1
        return .with {
            $0.submitOperations.number = number
            $0.submitOperations.bindNumber = 1
            $0.submitOperations.operations = sent
        }
    }

    /// What the gateway says to a frame.
    ///
    /// - Returns: ids of those that the service has, and of those that it will never take; the rest go again.
    mutating func answered(_ answer: Mss_Device_V1_OperationsTaken) -> (taken: [String], refused: [String]) {
        guard isUnderWay, answer.number == number else { return ([], []) }
        isUnderWay = false
        var codes: [String: UInt32] = [:]
        for refusal in answer.refusals { codes[refusal.operationID] = refusal.code }
        var taken: [String] = []
        var refused: [String] = []
        sent.removeAll { operation in
            guard let code = codes[operation.operationID] else {
                taken.append(operation.operationID)
                return true
            }
            guard OperationRefusalCode.remedy(of: code) == .none else { return false }
            refused.append(operation.operationID)
            return true
        }
        return (taken, refused)
    }

    /// The result of one has come: whatever the answer to its frame is, it is over.
    mutating func told(_ id: String) { sent.removeAll { $0.operationID == id } }

    /// The connection has ended: what was under way goes again with the next one.
    mutating func ended() {
        isUnderWay = false
        number = 0
    }
}
