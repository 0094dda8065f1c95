import ArgumentParser
import SyncModel

/// How much calls may ask for, as options.
struct LimitArguments: ParsableArguments {
    @Option(help: "Calls in a second at each ingest; 0: no limit.")
    var requestsPerSecond: Int?
    @Option(help: "Pushes in a day (UTC), over all ingests; 0: no limit.")
    var pushesPerDay: Int?

    func validate() throws {
        if let fault = over(KeyLimits()).fault { throw ValidationError(fault) }
    }

    /// The limits after these options: what is not given stays.
    func over(_ limits: KeyLimits) -> KeyLimits {
        KeyLimits(
            requestsPerSecond: requestsPerSecond.map { $0 == 0 ? nil : $0 } ?? limits.requestsPerSecond,
            pushesPerDay: pushesPerDay.map { $0 == 0 ? nil : $0 } ?? limits.pushesPerDay)
    }

    /// Limits for people.
    static func words(_ limits: KeyLimits) -> String {
        let calls = limits.requestsPerSecond.map { "\($0) calls/s" }
        let pushes = limits.pushesPerDay.map { "\($0) pushes/day" }
        let words = [calls, pushes].compactMap { $0 }
        return words.isEmpty ? "no limits" : words.joined(separator: ", ")
    }
}
