import Foundation
import TestSupport

/// The test programs of the Java client. They need `MSS_TEST_JAVA`, the file `.build-java/command` that
/// `Tests/JavaTests/run.sh` writes; `deploy/test` sets it.
enum JavaProgram {
    private static let setting = ProcessInfo.processInfo.environment["MSS_TEST_JAVA"]

    /// Whether the programs can run. Without them the tests of the Java client are skipped, and torture fails.
    static var isBuilt: Bool { setting != nil }

    /// Path of the file with the command that runs a program.
    static var commandFile: String { get throws { try requireValue(setting, "MSS_TEST_JAVA is not set") } }

    /// Returns the command that runs a program.
    static func command(_ name: String) throws -> [String] {
        let words = try String(contentsOfFile: commandFile, encoding: .utf8).split(separator: "\n").map(String.init)
        return words + ["org.mobilesync.tests.\(name)"]
    }
}
