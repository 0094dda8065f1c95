import Foundation

/// What the processes of one name have used so far: the process itself and all that it started.
struct ProcessSample: Hashable, Sendable {
    /// Of the processor, ended children included.
    var cpuMicroseconds = 0
    /// Anonymous memory of all, and the largest shared one.
    var residentBytes = 0
    /// How often a thread slept and was woken again.
    var wakeUps = 0
    /// Calls of malloc and its kin; nil: nobody counts them.
    var allocations: Int?
    /// Message bodies; nil: the process has no bus, or does not say.
    var bodiesSent: Int?
    var bodiesReceived: Int?
}
