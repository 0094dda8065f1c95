import Dispatch

/// Runs the store's work one by one on a queue of its own, where it may wait for the disk.
final class StoreQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "offline-resources")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedSerialExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}
