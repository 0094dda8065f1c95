import Foundation

/// Runs work that blocks or computes for long, so that it does not use one of the pool's two threads.
package enum OwnThread {
    /// Runs the body on a new thread.
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Result(catching: body)) }.start()
        }
    }
}
