import Dispatch

/// Runs an actor's jobs one after another on a queue of its own, so that a job can block on the disk.
package final class BlockingExecutor: SerialExecutor {
    private let queue: DispatchQueue

    /// - Parameter label: the name of the queue in debuggers.
    package init(label: String) { queue = DispatchQueue(label: label) }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// The older form of the requirement: iOS 16 has no `ExecutorJob`.
    package func enqueue(_ job: UnownedJob) {
        let executor = asUnownedSerialExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}
