/// The result of one case.
struct ConformanceResult: Hashable, Sendable {
    let name: String
    let rule: String
    let verdict: ConformanceVerdict
    let took: Duration
}
