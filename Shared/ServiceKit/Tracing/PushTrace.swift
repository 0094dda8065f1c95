import Crypto
import Foundation
package import SyncModel

/// The trace of one push over all processes (OpenTelemetry; W3C Trace Context); pure.
///
/// Every process finds the same ids by itself, from what names the push: so no message carries them, and each decides
/// alike which pushes are traced.
package struct PushTrace: Hashable, Sendable {
    /// What happens to a push, one after the other.
    package enum Step: String, CaseIterable, Sendable {
        /// The ingest's call of the writers.
        case push
        /// The writer's transaction.
        case store
        /// The gateway hands it to a device.
        case handOut = "hand out"
        /// From there until the device has it on its disk.
        case acknowledge
        /// From there until the app has confirmed it.
        case confirm

        /// What leads to it.
        var before: Step? {
            switch self {
            case .push: nil
            case .store: .push
            case .handOut: .store
            case .acknowledge: .handOut
            case .confirm: .acknowledge
            }
        }

        /// Whether each device has its own.
        var isOfDevice: Bool { self != .push && self != .store }
    }

    /// 16 bytes.
    let id: [UInt8]

    /// - Parameters:
    ///   - target: the user or the device; empty: everybody.
    ///   - thirdMessageID: the caller's own id of the push.
    package init(instanceID: InstanceID, bizType: BizType, target: String, thirdMessageID: ThirdMessageID) {
        var digest = SHA256()
        for part in [instanceID.text, bizType.text, target, thirdMessageID.text] {
            withUnsafeBytes(of: UInt32(part.utf8.count).bigEndian) { digest.update(bufferPointer: $0) }
            digest.update(data: Data(part.utf8))
        }
        id = Array(digest.finalize().prefix(16))
    }

    /// Whether it is one of those that are traced, of which there is one in so many.
    func isTraced(oneIn count: Int) -> Bool {
        let number = id.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return number % UInt64(max(1, count)) == 0
    }

    /// 8 bytes that name a step, of a device where each device has its own.
    func spanID(_ step: Step, _ deviceID: String) -> [UInt8] {
        var digest = SHA256()
        digest.update(data: id + Data(step.rawValue.utf8))
        if step.isOfDevice { digest.update(data: Data(deviceID.utf8)) }
        return Array(digest.finalize().prefix(8))
    }
}
