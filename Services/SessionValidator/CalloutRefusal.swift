/// Why a tenant's endpoint is not called; for the operator's log. It names no session and no user.
struct CalloutRefusal: Error, Hashable, CustomStringConvertible {
    let reason: String
    var description: String { reason }

    init(_ reason: String) { self.reason = reason }
}
