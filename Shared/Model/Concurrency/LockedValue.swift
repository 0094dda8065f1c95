import Foundation

/// A value that one thread uses at a time. For short critical sections of the client modules.
///
/// The client modules run on iOS 16 and macOS 13, where `Synchronization.Mutex` does not exist. The body of `withLock`
/// must not call `withLock` of the same object, which would wait for ever, and must not block.
///
/// Unchecked: every use of the value holds the lock.
package final class LockedValue<Value: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    package init(_ value: Value) { self.value = value }

    /// Runs the body with exclusive use of the value. Waits until other threads have finished their bodies.
    ///
    /// - Returns: the result of the body.
    /// - Throws: the error of the body. Its changes of the value stay.
    package func withLock<Result, Failure>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
