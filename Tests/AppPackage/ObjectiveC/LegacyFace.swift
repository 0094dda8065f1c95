// A stand-in for the parts of MobileSyncLegacy that Objective-C does not see.
import MobileSync

final class LegacyFace: Sendable {
    static let shared = LegacyFace()
}
