/// A key of an instance: who holds its secret is who it was given to (spec H9, reliability SEC6).
package struct AppKey: Hashable, Sendable {
    /// Whose requests a key signs; a key is good for its own purpose alone.
    package enum Purpose: Int16, Hashable, Sendable, CaseIterable {
        /// Calls of the HTTP API.
        case backend = 1
        /// Connects of devices. It stands in every copy of the app, so it opens nothing else.
        case device = 2
        /// Our questions to the tenant (spec V2, reliability SEC12).
        case callout = 3

        /// The purpose in texts: rings of keys, settings, the derivation of keys. It never changes.
        package var word: String {
            switch self {
            case .backend: "backend"
            case .device: "device"
            case .callout: "callout"
            }
        }
    }

    /// Names the key in requests; unique in the whole service.
    package var id: String
    package var purpose: Purpose
    /// The secret, sealed under the newest master key's key for the purpose: never in clear at rest or on the way to
    /// who uses it (reliability SEC16). Empty in the tool's copy.
    package var sealedSecret: [UInt8]
    package var limits: KeyLimits
    package var createdAt: WallTime

    package init(id: String, purpose: Purpose, sealedSecret: [UInt8], limits: KeyLimits, createdAt: WallTime) {
        self.id = id
        self.purpose = purpose
        self.sealedSecret = sealedSecret
        self.limits = limits
        self.createdAt = createdAt
    }
}
