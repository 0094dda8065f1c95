import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// What one device has sent of its user's doing and was not answered yet; pure.
struct SessionOperations {
    /// When a device may send again what the service could not take.
    static let pauseMilliseconds: UInt32 = 1_000

    /// One frame.
    struct Frame: Hashable, Sendable {
        let number: UInt32
        let ids: [String]

        /// The frame's answer when none of it was taken.
        func refusal(_ code: UInt32, _ message: String, retryAfterMilliseconds: UInt32 = 0) -> Mss_Device_V1_Packet {
            .operationsTaken(
                number, refusals: ids.map { OperationRefusal(operationID: $0, code: code, message: message) },
                retryAfterMilliseconds: retryAfterMilliseconds)
        }
    }

    /// The frame whose answer is awaited; one at a time.
    var submitted: Frame?
    /// The highest number of a frame so far; 0: there was none.
    var lastNumber: UInt32 = 0

    /// Another bind is in force: the answer to what was sent under the one before is nobody's.
    mutating func forgetUser() { submitted = nil }
}
