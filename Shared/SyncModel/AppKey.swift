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
    }

    /// Names the key in requests; unique in the whole service.
    package var id: String
    package var purpose: Purpose
    /// The secret under a master key: never in clear at rest or on the bus (reliability SEC16).
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
