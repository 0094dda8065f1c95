import Dispatch

/// Runs an actor's jobs one after another on a queue of its own, so that a job can block on the disk.
final class BlockingExecutor: SerialExecutor {
    private let queue: DispatchQueue

    /// - Parameter label: the name of the queue in debuggers.
    init(label: String) { queue = DispatchQueue(label: label) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedSerialExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}
