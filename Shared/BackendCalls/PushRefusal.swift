package import SyncModel

/// Why a push is not done: nothing was stored, and a repeat without a change gets the same answer.
package struct PushRefusal: Error, Hashable, Sendable {
    package let code: ResultCode
    /// A sentence for the caller: which parameter, its limit, what to do.
    package let detail: String

    /// Refuses with a code and a sentence.
    package init(_ code: ResultCode, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
