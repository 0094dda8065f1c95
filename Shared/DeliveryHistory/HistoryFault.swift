/// A promise that a run has broken.
package struct HistoryFault: Sendable, Hashable, CustomStringConvertible {
    /// Which promise, by its number among the invariants (I) or the rules of delivery (D) and of the API (H).
    package enum Promise: String, Sendable, CaseIterable {
        /// What was answered with success is stored under the answered id.
        case stored = "I1"
        /// It is given to every app it is for, once.
        case delivered = "I2"
        /// In the order of the backend's calls.
        case ordered = "I3"
        /// Nothing is given that nobody pushed, nothing but what was pushed, and nothing after its validity.
        case attempted = "I4"
        /// One id per push, one push per id.
        case identified = "I5"
        /// To nobody else.
        case addressed = "I6"
        /// Checked data goes only to sessions whose verdict counts.
        case verified = "I7"
        /// A sync point never falls, and never passes what its receiver was sent.
        case bounded = "I8"
        /// A backend is told that nobody took a push only when nobody did.
        case honest = "I9"
        /// A repeat is on record before it goes out, and there are no more of them than the ladder has.
        case counted = "I10"
        /// The service has caught up within 30 s after a heal, and answers while maintenance waits for a lock.
        case prompt = "I11"
        /// Single-device data goes to the device on which the app signed in last, and to no other.
        case owned = "D8"
        /// A recalled push goes to no device that has not stored it.
        case recalled = "H7"
        /// Every process goes by the rules in force.
        case governed = "D17"
    }

    package let promise: Promise
    /// When it was seen, since the run's beginning.
    package let at: Duration
    package let text: String

    package var description: String {
        let milliseconds = at.components.seconds * 1_000 + at.components.attoseconds / 1_000_000_000_000_000
        return "\(milliseconds) ms: \(promise.rawValue): \(text)"
    }
}
