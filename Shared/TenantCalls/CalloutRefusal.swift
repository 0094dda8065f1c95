/// Why a tenant's endpoint is not called; for the operator's log. It names no session and no user.
package struct CalloutRefusal: Error, Hashable, CustomStringConvertible {
    package let reason: String
    package var description: String { reason }

    init(_ reason: String) { self.reason = reason }
}
