import Dispatch

/// Executes the store's jobs one at a time on a dispatch queue, which can wait for the disk.
final class StoreQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "offline-resources")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedSerialExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}
