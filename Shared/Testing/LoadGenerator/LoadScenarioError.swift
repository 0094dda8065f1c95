/// A scenario cannot run: the place of the error and the expected content.
struct LoadScenarioError: Error, Hashable, CustomStringConvertible {
    /// Path of keys and indexes, such as `steps[2].rate`. Empty for the whole scenario.
    let place: String
    /// The expected content.
    let expected: String

    var description: String { place.isEmpty ? expected : "\(place): \(expected)" }
}
