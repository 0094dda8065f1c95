/// Why a push's JSON is refused.
struct PushFault: Error, Hashable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
