import TestSupport
import Testing

// The tests run on real servers: two writers, two gateways, two ingests, PostgreSQL, RabbitMQ, real TLS. Four stacks run
// side by side, as most tests wait for timers and processes. Each test has users, devices and keys of its own.

/// Suites that kill, pause or restart processes, or measure times. One after the other, on one stack.
@Suite("On the running system", .serialized, .stack)
enum RunningSystem {}

/// Further suites of this kind, and some that do not mind them, on a second stack.
@Suite("On a second running system", .serialized, .stack)
enum SecondRunningSystem {}

/// Suites that leave every process of the stack alone. One after the other, on a stack of their own.
@Suite("On a steady system", .serialized, .stack)
enum SteadySystem {}

/// Further suites of this kind, on a second stack. Suites are divided so that the stacks end at about the same time.
@Suite("On a second steady system", .serialized, .stack)
enum SecondSteadySystem {}

/// Suites that keep both processors busy, or in which RabbitMQ starts again under load. `deploy/test` runs them after
/// all others, as they would starve beside them.
@Suite("On a system by itself", .serialized, .stack)
enum ExclusiveSystem {}

extension Stack {
    /// The stack of the suite that runs.
    static var running: Stack {
        get throws { try requireValue(StackTrait.stack, "no stack is running") }
    }
}
