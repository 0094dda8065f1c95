import DeviceProtocol
import Foundation
import NIOCore
import SwiftProtobuf
import SyncModel

/// Operations of devices.
extension LoadRun {
    /// Shortest interval of the timer, in nanoseconds.
    private static let pause: Int64 = 1_000_000

    /// Starts a stream of operations. The stream ends after its last submission.
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
            let device = fleet.device(for: launched / stream.burst)
            device.submit(makeOperation(stream, of: device, due: due(launched)))
            launched += 1
        }
        for device in fleet.devices { device.sendOperations() }
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
        let number = operations.submitted + 1
        let operation = Mss_Device_V1_DeviceOperation.with {
            $0.operationID = "\(plan.run)p\(plan.part.number)n\(number)"
            $0.component = plan.scenario.bizType
            $0.entityKey = "\(device.name)-\(number % stream.entities)"
            $0.name = "update"
            $0.body = Data(#"{"quantity":2}"#.utf8)
        }
        operations.submit(operation.operationID, by: device.name, to: operation.entityKey, due: due)
        return operation
    }
}
