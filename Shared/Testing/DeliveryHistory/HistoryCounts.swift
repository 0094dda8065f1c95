/// Numbers of pushes and hand-outs of a run.
package struct HistoryCounts: Hashable, Sendable {
    package internal(set) var handOuts = 0
    package internal(set) var repeatedHandOuts = 0
    package internal(set) var answeredPushes = 0
    /// Answered pushes that a failover has lost.
    package internal(set) var forgottenPushes = 0

    package init() {}
}
