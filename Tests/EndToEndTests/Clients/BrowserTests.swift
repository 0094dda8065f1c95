import Foundation
import TestSupport
import Testing

/// The Python interpreter with a browser driver; nil: no browser tests.
private let python = ProcessInfo.processInfo.environment["MSS_TEST_BROWSER"]

extension SteadySystem {
    /// Pages in a real browser, over the gateway's TLS. Needs `MSS_TEST_BROWSER`, a Python interpreter that
    /// `deploy/scripts/browser.sh` prepares; `deploy/test` sets it.
    @Suite("Browser", .enabled(if: python != nil))
    struct BrowserTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        private func walk(_ name: String, _ more: [String]) async throws {
            let root = ProjectFolder.url.appending(path: "Tests/JavaScriptTests")
            let outcome = try await Command.run(
                URL(fileURLWithPath: try requireValue(python, "no Python for the browser")),
                [
                    root.appending(path: "browser_test.py").path, "https://127.0.0.1:\(stack.gateways[0])", "--walk",
                    name, "--push", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance,
                ] + more,
                environment: ["PATH": "/usr/bin:/bin", "HOME": stack.folder.path, "PYTHONDONTWRITEBYTECODE": "1"])
            #expect(outcome.status == 0, "\(outcome.output)")
        }

        @Test(
            "the demo page as a device: connected, offline, reloaded, in two tabs, over a gateway's death, with lists")
        func demoPage() async throws {
            let gateway = try stack.process("gateway-0")
            try await walk(
                "page",
                ["--restart", "kill -KILL \(gateway.processIdentifier)", "--pictures", stack.folder.path])
        }

        @Test("Sync Express: an offline edit is sent once and in order, and a push refreshes the data")
        func syncExpress() async throws { try await walk("express", []) }
    }
}
