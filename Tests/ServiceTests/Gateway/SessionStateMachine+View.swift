import BusMessages
import SyncModel

@testable import Gateway

/// The state that the suites look at.
extension SessionStateMachine {
    var isClosed: Bool { stage == .closed }
    /// The Connect is accepted, and the first registration has not succeeded.
    var isOpening: Bool { stage == .connected && session?.registration.isOpen == false }
    var isOpen: Bool { stage == .connected && session?.registration.isOpen == true }
    var isRegistering: Bool { session?.registration.isInFlight ?? false }
    var leaseEpoch: Int64 { session?.registration.leaseEpoch ?? 0 }
    var windowUsed: Int { session?.window.used ?? 0 }
    var verdict: SessionCheck.Verdict { session?.eligibility.check.verdict ?? .unknown }
    /// The answer to the last frame of parameters is pending.
    var isKeeping: Bool { session?.parameters.isKeeping ?? false }
    /// The frame of operations in flight.
    var submitted: SessionOperations.Frame? { session?.operations.submitted }
}
