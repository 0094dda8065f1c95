/// Runs the steps of asynchronous functions when the simulation calls `drain`, on its thread and in the order in which
/// they became ready.
// Unchecked: only the simulation's thread makes steps ready, and only it drains them.
final class SimulationExecutor: TaskExecutor, @unchecked Sendable {
    private var ready: [UnownedJob] = []

    func enqueue(_ job: consuming ExecutorJob) { ready.append(UnownedJob(job)) }

    /// Runs the ready steps, and the steps that become ready meanwhile.
    func drain() {
        while !ready.isEmpty {
            let jobs = ready
            ready = []
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}
