import Foundation

/// A thread for what blocks or computes for long: the pool's two threads are those of every other test.
package enum OwnThread {
    /// Runs the body on a thread of its own.
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Result(catching: body)) }.start()
        }
    }
}
