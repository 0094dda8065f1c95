import Foundation
import TestSupport
import Testing

/// The Python that drives a browser; nil: none.
private let python = ProcessInfo.processInfo.environment["MSS_TEST_BROWSER"]

extension RunningSystem {
    /// Pages in a real browser, over the gateway's TLS. Needs `MSS_TEST_BROWSER`, a Python that
    /// `deploy/scripts/browser.sh` prepares; `deploy/test` sets it.
    @Suite("Browser", .enabled(if: python != nil))
    struct BrowserTests {
        let stack: Stack

        init() throws { stack = try RunningSystem.stack }

        private func walk(_ name: String, _ more: [String]) async throws {
            let root = URL(fileURLWithPath: #filePath).appending(path: "../../JavaScriptTests").standardized
            let outcome = try await Command.run(
                URL(fileURLWithPath: try requireValue(python, "no Python for the browser")),
                [
                    root.appending(path: "browser_test.py").path, "https://127.0.0.1:\(stack.gateways[0])", "--walk",
                    name, "--push", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance,
                ] + more,
                environment: ["PATH": "/usr/bin:/bin", "HOME": stack.folder.path, "PYTHONDONTWRITEBYTECODE": "1"])
            #expect(outcome.status == 0, "\(outcome.output)")
        }

        @Test("a device in the browser: live, dark, reloaded, in two tabs, over a gateway's death, with lists")
        func demoPage() async throws {
            let gateway = try stack.process("gateway-0")
            try await walk(
                "page",
                ["--restart", "kill -KILL \(gateway.processIdentifier)", "--pictures", stack.folder.path])
        }

        @Test("Sync Express in the browser: edited offline it goes up once and in order, and a push makes it fresh")
        func syncExpress() async throws { try await walk("express", []) }
    }
}
