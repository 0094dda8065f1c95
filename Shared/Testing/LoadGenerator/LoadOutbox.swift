import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// Device operations that the service has not confirmed. One frame is in flight at a time, as DeviceProtocol.md
/// requires. Operations that wait meanwhile go into the next frame.
struct LoadOutbox {
    private var waiting: [Mss_Device_V1_DeviceOperation] = []
    private var sent: [Mss_Device_V1_DeviceOperation] = []
    private var number: UInt32 = 0
    private var isInFlight = false

    /// Adds an operation.
    mutating func add(_ operation: Mss_Device_V1_DeviceOperation) { waiting.append(operation) }

    /// The next frame. The value is nil if nothing waits, or a frame is in flight.
    mutating func next() -> Mss_Device_V1_Packet? {
        guard !isInFlight else { return nil }
        if sent.isEmpty {
            sent = Array(waiting.prefix(Limits.frameOperations))
            waiting.removeFirst(sent.count)
        }
        guard !sent.isEmpty else { return nil }
        isInFlight = true
        number += 1
        return .with {
            $0.submitOperations.number = number
            $0.submitOperations.bindNumber = 1
            $0.submitOperations.operations = sent
        }
    }

    /// Applies the gateway's answer to a frame.
    ///
    /// - Returns: ids of stored operations and of finally refused ones. The other operations are sent again.
    mutating func answered(_ answer: Mss_Device_V1_OperationsTaken) -> (taken: [String], refused: [String]) {
        guard isInFlight, answer.number == number else { return ([], []) }
        isInFlight = false
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

    /// Records the result of an operation. It is not sent again, also if its frame has no answer.
    mutating func complete(_ id: String) { sent.removeAll { $0.operationID == id } }

    /// Records the end of the connection. The frame in flight is sent again on the next connection.
    mutating func ended() {
        isInFlight = false
        number = 0
    }
}
