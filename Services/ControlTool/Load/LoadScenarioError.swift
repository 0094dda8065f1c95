/// Why a scenario cannot be run: where in it, and what is wanted there.
struct LoadScenarioError: Error, Hashable, CustomStringConvertible {
    /// Keys and places from the outside, such as `steps[2].rate`; empty: the scenario as a whole.
    let place: String
    /// What should stand there.
    let expected: String

    var description: String { place.isEmpty ? expected : "\(place): \(expected)" }
}
