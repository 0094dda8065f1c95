import AsyncHTTPClient
import Foundation
import TestSupport
import Testing

extension SteadySystem {
    /// The sample of `deploy/samples/field-service`, run by the steps of its tutorial.
    @Suite("The field service sample")
    struct FieldServiceTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        /// The command with this stack's addresses in place of the local stack's addresses.
        private func here(_ command: String, in folder: URL) -> String {
            let ours = command.replacing("127.0.0.1:7195", with: "127.0.0.1:\(stack.operationsPort)")
            if ours.hasPrefix("mss-field-service join") {
                return ours + " --port \(stack.gateways[0]) --ca \(stack.certificateAuthority)"
                    + " --backend http://127.0.0.1:\(stack.operationsPort)"
            }
            guard ours.hasPrefix("mss-field-service backend") else { return ours }
            return ours.replacing(" &", with: "") + " --port \(stack.operationsPort)"
                + " --api http://127.0.0.1:\(stack.apis[0])"
        }

        private func words(_ command: String) -> [String] { command.split(separator: " ").map(String.init) }

        @Test(
            "RES, ENT, SVC: the tutorial works as written, with offline edits, a conflict in both versions, and a photo"
        )
        func tutorial() async throws {
            let steps = try Tutorial(at: "deploy/samples/field-service/README.md").steps
            #expect(steps.count { $0.output != nil } > 30)
            let folder = stack.folder.appending(path: "field")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            var backend: Supervised?
            defer { backend?.stop() }
            for step in steps {
                let command = here(step.command, in: folder)
                if command.hasPrefix("mss-field-service backend") {
                    backend = try await start(words(command), in: folder)
                } else if command.hasPrefix("mssctl ") {
                    let outcome = try await stack.tool(Array(words(command).dropFirst()))
                    #expect(outcome.status == 0, "\(command): \(outcome.output)")
                } else if let expected = step.output {
                    let outcome = try await run(command, in: folder)
                    // After a step with a different output, further comparisons are meaningless.
                    try #require(outcome.output == expected, "\(command) shows \(outcome.output)")
                    #expect(outcome.status == 0, "\(command)")
                } else {
                    // Steps that start the local stack are skipped: this stack replaces it.
                    #expect(["deploy/up", "swift", "export"].contains(words(command)[0]), "\(command)")
                }
            }
            let join = here("mss-field-service join --folder tablet-ana --user ana --device tablet-ana", in: folder)
            let nowhere = join.replacing("--port \(stack.gateways[0]) ", with: "--port 1 ")
            let offline = try await run(
                "\(nowhere) && mss-field-service note --folder tablet-ana 3 later"
                    + " && mss-field-service sync --folder tablet-ana --seconds 2", in: folder)
            #expect(offline.status == 1, "no backend listens there")
            #expect(
                offline.output.hasSuffix("offline: the remaining changes are sent with the next sync\n"),
                "\(offline.output)")
            let online = try await run(
                "\(join) && mss-field-service sync --folder tablet-ana", in: folder)
            #expect(online.output.hasSuffix("accepted: incident 3\nin sync\n"), "\(online.output)")
        }

        /// Runs a shell line in the tutorial's folder.
        private func run(_ line: String, in folder: URL) async throws -> (status: Int32, output: String) {
            try await Command.run(
                URL(filePath: "/bin/bash"), ["-c", "cd '\(folder.path)' && \(line)"],
                environment: ["PATH": "\(StackPlan.binaries.path):/usr/bin:/bin", "HOME": folder.path])
        }

        /// Starts the backend and waits until it has pushed its data.
        private func start(_ words: [String], in folder: URL) async throws -> Supervised {
            var arguments = Array(words.dropFirst())
            if let place = arguments.firstIndex(of: "--folder") {
                arguments[place + 1] = folder.appending(path: arguments[place + 1]).path
            }
            let backend = Supervised(
                name: "field-backend", executable: StackPlan.binaries.appending(path: "mss-field-service"),
                arguments: arguments, environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path],
                log: folder.appending(path: "backend.log"))
            try backend.start()
            let address = "http://127.0.0.1:\(stack.operationsPort)/photos/none"
            try await eventually("the backend listens", within: .seconds(30)) {
                (try? await stack.get(address).status) == 404
            }
            return backend
        }
    }
}
