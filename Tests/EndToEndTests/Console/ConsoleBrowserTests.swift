import ClientServices
import Foundation
import Logging
import MobileSync
import TestSupport
import Testing

/// The Python interpreter with a browser driver; nil: no browser tests.
private let python = ProcessInfo.processInfo.environment["MSS_TEST_BROWSER"]

extension SteadySystem {
    /// The console in a real browser. Needs `MSS_TEST_BROWSER`, a Python interpreter that `deploy/scripts/browser.sh`
    /// prepares; `deploy/test` sets it. `MSS_TEST_PICTURES` names a folder for screenshots of every page.
    @Suite("Console in a browser", .enabled(if: python != nil))
    struct ConsoleBrowserTests {
        /// The instance whose devices submit operations for console_test.py.
        private static let workInstance = "console_work"

        let stack: Stack

        init() throws { stack = try Stack.running }

        @Test("C1 to C13, SEC13, SEC14: every row by real clicks, the mistakes of users, and the appearance")
        func rows() async throws {
            let made = try await stack.tool([
                "instance", "create", Self.workInstance, "--relay-url",
                "http://127.0.0.1:\(stack.operationsPort)/operations",
            ])
            #expect(made.status == 0, "\(made.output)")
            let isWell = Flag()
            let tenant = OperationTenant { call, _ in
                switch call.question["operation"] {
                case "bad": OperationTenant.Answer(status: isWell.isSet ? 200 : 500)
                case "refuse": OperationTenant.Answer(status: 409, body: #"{"code": 423, "message": "it is locked"}"#)
                default: OperationTenant.Answer()
                }
            }
            try await tenant.serving(stack.operationsPort) {
                try await submitOperations()
                isWell.set()
                let phone = try DiagnosisApp(
                    stack, device: "console-log", instance: Self.workInstance, port: stack.gateways[0])
                phone.uploads.networkChanged(to: .wifi)
                phone.log.append(level: .info, label: "app", message: "well, here it is")
                try await phone.running { try await click() }
            }
        }

        /// Of five operations, three become dead letters, one is accepted and one is refused.
        private func submitOperations() async throws {
            let app = try OperationApp(
                stack, device: "console-op", user: "console-worker", instance: Self.workInstance)
            let operations = ["bad", "bad", "bad", "update", "refuse"].enumerated()
            try await app.running {
                for (number, name) in operations {
                    try app.submit(["work-\(number + 1)"], key: "\(number)", name: name)
                }
                try await app.hasResults(of: operations.map { "work-\($0.offset + 1)" })
            }
            #expect(try app.result(of: "work-3").code == 504)
        }

        private func click() async throws {
            let console = "http://127.0.0.1:\(stack.consolePort)"
            let invitation = try await stack.tool(["console", "invite", "--console", console])
            #expect(invitation.status == 0, "\(invitation.output)")
            let script = ProjectFolder.url.appending(path: "Tests/BrowserTests/console_test.py")
            let pictures = ProcessInfo.processInfo.environment["MSS_TEST_PICTURES"].map { ["--pictures", $0] } ?? []
            let outcome = try await Command.run(
                URL(fileURLWithPath: try requireValue(python, "no Python for the browser")),
                [
                    script.standardized.path, "--console", console, "--invitation",
                    invitation.output.trimmingCharacters(in: .whitespacesAndNewlines), "--api",
                    "http://127.0.0.1:\(stack.apis[0])", "--gateway", "https://127.0.0.1:\(stack.gateways[0])",
                    "--database", stack.databaseAddress, "--work", Self.workInstance,
                ] + pictures,
                environment: ["PATH": "/usr/bin:/bin", "HOME": stack.folder.path, "PYTHONDONTWRITEBYTECODE": "1"])
            // From the first failed step on: a summary shows only the beginning.
            let start = outcome.output.range(of: "FAIL ")?.lowerBound ?? outcome.output.startIndex
            #expect(outcome.status == 0, "\(outcome.output[start...])")
        }
    }
}
