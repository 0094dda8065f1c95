import ArgumentParser
import Foundation
import Glibc

/// A mount namespace of this process and its children. Their mounts end with them.
enum MountNamespace {
    /// Environment variable of a process that is in the namespace already.
    private static let mark = "MSS_TORTURE_NAMESPACE"

    /// Restarts the program in a new namespace, and returns only there.
    static func enter() throws {
        guard getenv(mark) == nil else { return }
        setenv(mark, "own", 1)
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let arguments = ["unshare", "--mount", program] + CommandLine.arguments.dropFirst()
        var pointers = arguments.map { strdup($0) }
        pointers.append(nil)
        execvp("unshare", &pointers)
        throw ValidationError("cannot start unshare: \(String(cString: strerror(errno)))")
    }
}
