/// A key of an instance. The secret proves the identity of its owner (H9, SEC6).
package struct AppKey: Hashable, Sendable {
    /// The purpose of a key. A key is valid only for its own purpose.
    package enum Purpose: Int16, Hashable, Sendable, CaseIterable {
        /// Calls of the HTTP API.
        case backend = 1
        /// Connects of devices. Every copy of the app contains it, so it is valid for nothing else.
        case device = 2
        /// The service's calls of the tenant (V2, SEC12).
        case callout = 3

        /// The word for the purpose in key rings, settings and key derivation. It never changes.
        package var word: String {
            switch self {
            case .backend: "backend"
            case .device: "device"
            case .callout: "callout"
            }
        }
    }

    /// The key's id in requests; unique in the whole service.
    package var id: String
    package var purpose: Purpose
    /// The secret, sealed with the key that is derived from the newest master key for the purpose. It is never
    /// unencrypted at rest or in transit (SEC16). Empty in the tool's copy.
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

/// Limits on the calls with a key, or on an instance's calls without one.
package struct KeyLimits: Hashable, Sendable {
    /// API calls per second at each ingest; nil: no limit.
    package var requestsPerSecond: Int?
    /// Pushes per UTC day over all ingests; nil: no limit.
    package var pushesPerDay: Int?

    /// Valid limits of calls; 0 means no limit.
    package static let calls = 0...1_000_000
    /// Valid limits of pushes; 0 means no limit.
    package static let pushes = 0...1_000_000_000_000

    /// The fault of the limits, as a sentence; nil for valid ones.
    package var fault: String? {
        Self.calls.contains(requestsPerSecond ?? 0) && Self.pushes.contains(pushesPerDay ?? 0)
            ? nil
            : "limits are at most \(Self.calls.upperBound) calls in a second, \(Self.pushes.upperBound) pushes a day"
    }

    package init(requestsPerSecond: Int? = nil, pushesPerDay: Int? = nil) {
        self.requestsPerSecond = requestsPerSecond
        self.pushesPerDay = pushesPerDay
    }
}
