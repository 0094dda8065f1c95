import ArgumentParser
import Foundation
import Glibc

/// A view of the file systems that only this process and its children have: what they mount goes with them.
enum MountNamespace {
    /// Says in the environment that the process is in one already.
    private static let mark = "MSS_TORTURE_NAMESPACE"

    /// Starts the program anew in one; returns only in it.
    static func enter() throws {
        guard getenv(mark) == nil else { return }
        setenv(mark, "own", 1)
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let arguments = ["unshare", "--mount", program] + CommandLine.arguments.dropFirst()
        var pointers = arguments.map { strdup($0) }
        pointers.append(nil)
        execvp("unshare", &pointers)
        throw ValidationError("unshare cannot be started: \(String(cString: strerror(errno)))")
    }
}
