/// A violation of an invariant in a run.
package struct HistoryFault: Sendable, Hashable, CustomStringConvertible {
    /// Invariant (I) or rule of delivery (D) or of the API (H).
    package enum Promise: String, Sendable, CaseIterable {
        /// A push that was answered with success is stored under the answered id.
        case stored = "I1"
        /// Every app receives each push for it once.
        case delivered = "I2"
        /// Apps receive pushes in the order of the backend's calls.
        case ordered = "I3"
        /// Apps receive only pushes of backends, with the pushed payload, and within their validity.
        case attempted = "I4"
        /// One push has one id, and one id has one push.
        case identified = "I5"
        /// Only devices of the target receive a push.
        case addressed = "I6"
        /// Checked data goes only to sessions with a current verdict.
        case verified = "I7"
        /// A sync point never falls, and never exceeds the ids that its receiver was sent.
        case bounded = "I8"
        /// A push is answered with NOT_ONLINE only if no device received it.
        case honest = "I9"
        /// A resend is on disk before it is sent, and the ladder limits the number of resends.
        case counted = "I10"
        /// The service catches up within 30 s after a fault heals, and answers while maintenance waits for a lock.
        case prompt = "I11"
        /// Single-device data goes only to the device on which the app last asked for a bind.
        case owned = "D8"
        /// A recalled push goes to no device that has not stored it.
        case recalled = "H7"
        /// Every process applies the control data in force.
        case governed = "D17"
    }

    package let promise: Promise
    /// Time of detection since the start of the run.
    package let at: Duration
    package let text: String

    package var description: String {
        let milliseconds = at.components.seconds * 1_000 + at.components.attoseconds / 1_000_000_000_000_000
        return "\(milliseconds) ms: \(promise.rawValue): \(text)"
    }
}
