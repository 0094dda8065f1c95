import Foundation
import TestSupport

/// The test programs of the Java client. They need `MSS_TEST_JAVA`, the file `.build-java/command` that
/// `Tests/JavaTests/run.sh` writes; `deploy/test` sets it.
enum JavaProgram {
    private static let commandFile = ProcessInfo.processInfo.environment["MSS_TEST_JAVA"]

    /// Whether the programs can run; without them there are no tests of the Java client.
    static var isBuilt: Bool { commandFile != nil }

    /// Returns the command that runs a program.
    static func command(_ name: String) throws -> [String] {
        let file = URL(fileURLWithPath: try requireValue(commandFile, "MSS_TEST_JAVA is not set"))
        let words = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        return words + ["org.mobilesync.tests.\(name)"]
    }
}
