import ChildProcesses
import Foundation
import TestSupport

/// A separate host for a process of the stack, when tests run in a laboratory of namespaces
/// (`deploy/scripts/hosts.sh`).
struct TestHost: Sendable {
    /// The laboratory's script; nil: all processes run on this machine, as usual.
    private static let script = ProcessInfo.processInfo.environment["MSS_TEST_HOSTS"].map { URL(fileURLWithPath: $0) }

    /// Whether processes have separate hosts, and therefore TLS between them.
    static var areSeparate: Bool { script != nil }

    private let script: URL
    private let name: String

    /// Returns nil without a laboratory.
    init?(_ name: String) {
        guard let script = Self.script else { return nil }
        self.script = script
        self.name = name
    }

    /// Creates the host, unless it exists, and forwards these ports of its loopback address to the other hosts.
    func open(_ ports: [String]) throws {
        let process = try ChildProcess([script.path, "host", name] + ports, output: .inherited, errors: .inherited)
        process.waitUntilExit()
        guard process.status == 0 else { throw Failure("hosts.sh host \(name): see above") }
    }

    /// Returns the command that runs a program on the host.
    func command(_ executable: URL, _ arguments: [String]) -> (executable: URL, arguments: [String]) {
        (URL(fileURLWithPath: "/usr/sbin/ip"), ["netns", "exec", name, executable.path] + arguments)
    }
}
