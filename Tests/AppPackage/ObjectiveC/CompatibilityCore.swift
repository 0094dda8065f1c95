// A stand-in for the parts of MobileSyncLegacy that Objective-C does not see.
import MobileSync

final class CompatibilityCore: Sendable {
    static let shared = CompatibilityCore()
}
