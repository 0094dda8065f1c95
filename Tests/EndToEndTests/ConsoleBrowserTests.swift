import Foundation
import TestSupport
import Testing

/// The Python that drives a browser; nil: none.
private let python = ProcessInfo.processInfo.environment["MSS_TEST_BROWSER"]

extension RunningSystem {
    /// The console in a real browser. Needs `MSS_TEST_BROWSER`, a Python that `deploy/scripts/browser.sh` prepares;
    /// `deploy/test` sets it. `MSS_TEST_PICTURES` names the folder in which the pictures of every page are left.
    @Suite("Console in a browser", .enabled(if: python != nil))
    struct ConsoleBrowserTests {
        @Test("C1 to C13, SEC13, SEC14: every row by real clicks, the mistakes that people make, and how it looks")
        func rows() async throws {
            let stack = try RunningSystem.stack
            let console = "http://127.0.0.1:\(stack.consolePort)"
            let invitation = try await stack.tool(["console", "invite", "--console", console])
            #expect(invitation.status == 0, "\(invitation.output)")
            let script = URL(fileURLWithPath: #filePath).appending(path: "../../BrowserTests/console_test.py")
            let pictures = ProcessInfo.processInfo.environment["MSS_TEST_PICTURES"] ?? stack.folder.path
            let outcome = try await Command.run(
                URL(fileURLWithPath: try requireValue(python, "no Python for the browser")),
                [
                    script.standardized.path, "--console", console, "--invitation",
                    invitation.output.trimmingCharacters(in: .whitespacesAndNewlines), "--api",
                    "http://127.0.0.1:\(stack.apis[0])", "--gateway", "https://127.0.0.1:\(stack.gateways[0])",
                    "--database", stack.databaseAddress, "--pictures", pictures,
                ], environment: ["PATH": "/usr/bin:/bin", "HOME": stack.folder.path, "PYTHONDONTWRITEBYTECODE": "1"])
            #expect(outcome.status == 0, "\(outcome.output)")
        }
    }
}
