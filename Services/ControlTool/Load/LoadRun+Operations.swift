import DeviceProtocol
import Foundation
import NIOCore
import SwiftProtobuf
import SyncModel

/// Operations that devices send up.
extension LoadRun {
    /// The shortest pause between two looks at what is due.
    private static let pause: Int64 = 1_000_000

    /// Begins a stream of operations; it is over when it sends no more.
    func begin(_ stream: OperationStream) {
        step?.open += 1
        tick(stream, from: Self.now, 0)
    }

    private func tick(_ stream: OperationStream, from start: Int64, _ launched: Int) {
        let now = Self.now
        let total = stream.perSecond * stream.seconds
        func due(_ operation: Int) -> Int64 {
            let first = operation - operation % stream.burst
            return start + Int64(first) * 1_000_000_000 / Int64(stream.perSecond)
        }
        var launched = launched
        while launched < total, due(launched) <= now {
            let device = devices[(launched / stream.burst &* 7_919) % devices.count]
            device.submit(makeOperation(stream, of: device, due: due(launched)))
            launched += 1
        }
        for device in devices { device.sendOperations() }
        guard launched < total else {
            step?.open -= 1
            return progressed()
        }
        let next = launched
        after(.nanoseconds(max(due(next) - now, Self.pause))) { [self] in tick(stream, from: start, next) }
    }

    private func makeOperation(
        _ stream: OperationStream, of device: LoadDevice, due: Int64
    ) -> Mss_Device_V1_DeviceOperation {
        operationsBegun += 1
        let operation = Mss_Device_V1_DeviceOperation.with {
            $0.operationID = "\(plan.run)p\(plan.part.number)n\(operationsBegun)"
            $0.component = plan.scenario.bizType
            $0.entityKey = "\(device.name)-\(operationsBegun % stream.entities)"
            $0.name = "update"
            $0.body = Data(#"{"quantity":2}"#.utf8)
        }
        operations.submit(operation.operationID, by: device.name, to: operation.entityKey, due: due)
        return operation
    }
}
