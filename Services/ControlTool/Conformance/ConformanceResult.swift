/// A case that was run.
struct ConformanceResult: Hashable, Sendable {
    let name: String
    let rule: String
    let verdict: ConformanceVerdict
    let took: Duration
}
