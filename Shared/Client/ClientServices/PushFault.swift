/// The reason that a push is refused.
struct PushFault: Error, Hashable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
