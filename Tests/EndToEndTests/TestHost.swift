import Foundation
import TestSupport

/// A host of its own for a process of the stack, where tests run in a laboratory (`deploy/scripts/hosts.sh`).
struct TestHost: Sendable {
    /// Of the laboratory; nil: everything runs on this machine, as usual.
    private static let script = ProcessInfo.processInfo.environment["MSS_TEST_HOSTS"].map { URL(fileURLWithPath: $0) }

    /// Whether processes have hosts of their own, and so TLS between them.
    static var areSeparate: Bool { script != nil }

    private let script: URL
    private let name: String

    /// Nil: there is no laboratory.
    init?(_ name: String) {
        guard let script = Self.script else { return nil }
        self.script = script
        self.name = name
    }

    /// Makes the host, unless it is there, and these ports of its loopback address known to the others.
    func open(_ ports: [String]) throws {
        let process = Process()
        process.executableURL = script
        process.arguments = ["host", name] + ports
        try process.runWithOpenSignals()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure("hosts.sh host \(name): see above") }
    }

    /// How to run a program there.
    func command(_ executable: URL, _ arguments: [String]) -> (executable: URL, arguments: [String]) {
        (URL(fileURLWithPath: "/usr/sbin/ip"), ["netns", "exec", name, executable.path] + arguments)
    }
}
