import TestSupport
import Testing

/// Everything that is tested on the running system: real servers, two writers, two gateways, two ingests, real TLS.
///
/// One stack serves all of it; each test has users, devices and keys of its own.
@Suite("On the running system", .serialized, .stack)
enum RunningSystem {
    /// The stack that the tests share.
    static var stack: Stack {
        get throws { try requireValue(StackTrait.stack, "no stack is running") }
    }
}
