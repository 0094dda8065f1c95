import Foundation
import ToolSupport

/// The measurement of one slice: a few seconds in which one side had the load.
struct SliceSample: Hashable, Sendable, Codable {
    /// Length of the measured part.
    let seconds: Double
    /// Pushes that devices received in the measured part.
    let deliveries: Int
    /// Time from the due instant of a push to its delivery, in milliseconds, for the pushes of the measured part.
    let p50: Double
    let p99: Double
    /// Use of the processors by process.
    let processes: [String: SchedulerSample.Counts]
    /// Percentage of the machine's time that the hypervisor took.
    let stolenPercent: Double
    /// The longest `fdatasync` of the probe, in milliseconds.
    let longestSync: Double
    /// The median wake-up on the other core and back, in microseconds.
    let ping: Double

    /// Deliveries per second.
    var rate: Double { Double(deliveries) / seconds }

    /// Processor time of all processes for a push, in microseconds.
    var cpuPerPush: Double {
        Double(processes.values.reduce(0) { $0 + $1.cpuNanoseconds }) / 1e3 / Double(deliveries)
    }
}

/// Neighbouring slices of the two sides.
struct SlicePair: Hashable, Sendable, Codable {
    let first: SliceSample
    let second: SliceSample
}

/// All measurements of one comparison. A report can be made from them again.
struct ComparisonSamples: Hashable, Sendable, Codable {
    /// The load, in words.
    let load: String
    /// Names of the sides.
    let first: String
    let second: String
    var pairs: [SlicePair] = []

    /// The samples as JSON.
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return try encoder.encode(self) + Data("\n".utf8)
    }
}
