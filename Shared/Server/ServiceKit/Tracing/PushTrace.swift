import Crypto
import Foundation
package import SyncModel

/// The distributed trace of one push (OpenTelemetry; W3C Trace Context); pure.
///
/// Each process derives the trace ids from the push itself. So no message carries them, and all processes trace the
/// same pushes.
package struct PushTrace: Hashable, Sendable {
    /// The steps of a push, in order.
    package enum Step: String, CaseIterable, Sendable {
        /// The ingest's request to the writers.
        case push
        /// The writer's transaction.
        case store
        /// The gateway sends the push to a device.
        case handOut = "hand out"
        /// From the hand-out until the device has stored the push.
        case acknowledge
        /// From the stored acknowledgement until the app has confirmed the push.
        case confirm

        /// The parent step.
        var before: Step? {
            switch self {
            case .push: nil
            case .store: .push
            case .handOut: .store
            case .acknowledge: .handOut
            case .confirm: .acknowledge
            }
        }

        /// Whether each device has a span of its own for this step.
        var isOfDevice: Bool { self != .push && self != .store }
    }

    /// 16 bytes.
    let id: [UInt8]

    /// - Parameters:
    ///   - target: the user or the device; empty for a global push.
    ///   - thirdMessageID: the caller's own id of the push.
    package init(instanceID: InstanceID, bizType: BizType, target: String, thirdMessageID: ThirdMessageID) {
        var digest = SHA256()
        for part in [instanceID.text, bizType.text, target, thirdMessageID.text] {
            withUnsafeBytes(of: UInt32(part.utf8.count).bigEndian) { digest.update(bufferPointer: $0) }
            digest.update(data: Data(part.utf8))
        }
        id = Array(digest.finalize().prefix(16))
    }

    /// Whether this push is traced, at a rate of one push in `count`.
    func isTraced(oneIn count: Int) -> Bool {
        let number = id.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return number % UInt64(max(1, count)) == 0
    }

    /// The 8-byte id of a step's span; it contains the device where each device has its own span.
    func spanID(_ step: Step, _ deviceID: String) -> [UInt8] {
        var digest = SHA256()
        digest.update(data: id + Data(step.rawValue.utf8))
        if step.isOfDevice { digest.update(data: Data(deviceID.utf8)) }
        return Array(digest.finalize().prefix(8))
    }
}
