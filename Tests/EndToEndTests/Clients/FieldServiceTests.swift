import Foundation
import TestSupport
import Testing

/// The file with the command that runs Java programs; nil: no Java tests.
private let commandFile = ProcessInfo.processInfo.environment["MSS_TEST_JAVA"]

extension SteadySystem {
    /// The sample of `deploy/samples/field-service`: its tutorial, the mistakes of users, kills, and the Java app.
    @Suite("The field service sample", .serialized)
    struct FieldServiceTests {
        let stack: Stack
        private let folder: URL

        init() throws {
            stack = try Stack.running
            folder = stack.folder.appending(path: "field-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }

        private var backendAddress: String { "http://127.0.0.1:\(stack.operationsPort)" }

        private func words(_ command: String) -> [String] { command.split(separator: " ").map(String.init) }

        // MARK: Tutorial

        @Test(
            "RES, ENT, SVC: the tutorial works as written: a live list, a merged conflict, a conversation, a photo, networks"
        )
        func tutorial() async throws {
            let steps = try Tutorial(at: "deploy/samples/field-service/README.md").steps
            #expect(steps.count { !$0.screen.isEmpty } > 20)
            var backend: Supervised?
            var apps: [String: TerminalApp] = [:]
            defer {
                for app in apps.values { app.stop() }
                backend?.stop()
            }
            for step in steps {
                if let name = step.app {
                    let app = try requireValue(apps[name], "the tutorial does not start the app of \(name)")
                    if step.screen.isEmpty {
                        try app.write(step.command)
                    } else {
                        // After a step with a different screen, further comparisons are meaningless.
                        try await app.type(step.command, shows: step.screen)
                    }
                } else if step.command.hasPrefix("mss-field-service backend") {
                    backend = try await startBackend()
                } else if step.command.hasPrefix("mss-field-service app") {
                    let name = try requireValue(step.command.firstMatch(of: /tablet-(\w+)/)?.output.1, step.command)
                    apps[String(name)] = try start("tablet-\(name)")
                } else {
                    try await prepare(step.command)
                }
            }
            for app in apps.values { #expect(try await app.quit() == 0) }
        }

        /// Runs a command of the tutorial's shell, with this stack's addresses in place of the local stack's.
        private func prepare(_ command: String) async throws {
            // This stack replaces the local one.
            if ["deploy/up", "swift", "export"].contains(words(command)[0]) { return }
            let ours = command.replacing("127.0.0.1:7195", with: "127.0.0.1:\(stack.operationsPort)")
                .replacing("--port 7443", with: "--port \(stack.gateways[0])")
                .replacing(".local/tls/ca.pem", with: stack.certificateAuthority)
            guard ours.hasPrefix("mssctl ") else {
                let outcome = try await Command.run(
                    URL(filePath: "/bin/bash"), ["-c", "cd '\(folder.path)' && \(ours)"],
                    environment: ["PATH": "/usr/bin:/bin"])
                return try #require(outcome.status == 0, "\(ours): \(outcome.output)")
            }
            let parts = ours.components(separatedBy: " > ")
            let outcome = try await stack.tool(Array(words(parts[0]).dropFirst()))
            try #require(outcome.status == 0, "\(ours): \(outcome.output)")
            if parts.count > 1 { try Data(outcome.output.utf8).write(to: folder.appending(path: parts[1])) }
        }

        // MARK: Mistakes and kills

        @Test("own mistakes change nothing; a killed app keeps the user, edits, messages and a photo, and sends them")
        func mistakesAndKills() async throws {
            try await prepareInstance("field_kills", devices: ["tablet-ana"])
            let backend = try await startBackend(instance: "field_kills")
            defer { backend.stop() }
            let photo = [UInt8](repeating: 7, count: 4_000_000)
            try Data(photo).write(to: folder.appending(path: "pump.jpg"))
            var app = try start("tablet-ana")
            defer { app.stop() }
            try await app.type("list", shows: "sign in first: sign-in USER")
            try await app.type("sign-in carl", shows: "the backend does not know the user carl")
            try await app.type("sign-in ana", shows: "2 No light in hall 3, open")
            try await app.shows("ana, connected")
            for (mistake, answer) in [
                ("dance", "dance is no command; help lists them"), ("", "an empty line is no command"),
                ("title 1", "write: title N TITLE"), ("open 9", "there is no incident 9"),
                ("merge mine", "open an incident first"), ("photo 1 nowhere.jpg", "there is no file nowhere.jpg"),
                ("sign-in ben", "ana is signed in; sign out first"), ("older", "there are no messages"),
            ] {
                try await app.type(mistake, shows: answer)
            }
            try await app.type("open 1", shows: "incident 1: Leaking pump, open")
            try await app.type("merge mine", shows: "1 has no conflict")
            let shown = ["  1 Leaking pump, open", "incident 1: Leaking pump, open"]
            #expect(app.screen.filter { $0.contains("pump") } == shown)
            // The user works without a network, and the system kills the app.
            try await app.type("network none", shows: "ana, offline, no network")
            try await app.type("title 1 Burst pump", shows: "U 1 Burst pump, open")
            try await app.type("photo 1 pump.jpg", shows: "photo of 1: 0 %")
            try await app.type("photo 1 pump.jpg", shows: "a photo of 1 is being sent")
            try app.write("say I am here")
            try await app.type("messages", shows: "messages:")
            app.kill()
            // The backend is away while the app starts again: nothing is lost, and nothing is sent.
            backend.stop()
            app = try start("tablet-ana")
            try await app.shows("U 1 Burst pump, open")
            try await app.shows("photo of 1: 0 %")
            try backend.start()
            try await app.shows("  1 Burst pump, open, photo")
            try await app.shows("the photo of 1 is sent")
            try await app.type("messages", shows: "ana: I am here")
            #expect(app.output.contains(/photo of 1: [1-9]\d* %/), "the progress was shown")
            try await app.type("open 1", shows: "photo of 4000000 bytes")
            try await app.type("sign-out", shows: "not signed in")
            try await app.type("sign-in ben", shows: "ben, connected, 1 unread")
            try await app.shows("  1 Burst pump, open, photo")
            try await app.type("sign-out", shows: "not signed in")
            #expect(try await app.quit() == 0)
        }

        // MARK: Java

        @Test(
            "the Java app: a conversation with the Swift app, live and by pages, offline, mistakes, a kill, suspension",
            .enabled(if: commandFile != nil))
        func javaApp() async throws {
            try await prepareInstance("field_java", devices: ["tablet-ana", "phone-ben"])
            let backend = try await startBackend(instance: "field_java")
            defer { backend.stop() }
            let ana = try start("tablet-ana")
            defer { ana.stop() }
            try await ana.type("sign-in ana", shows: "ana, connected")
            for number in 1...5 { try ana.write("say message \(number)") }
            var ben = try startJava("phone-ben")
            defer { ben.stop() }
            try await ben.type("older", shows: "sign in first: sign-in USER")
            try await ben.type("sign-in carl", shows: "the backend does not know the user carl")
            try await ben.type(
                "sign-in ben",
                shows: ["ben, connected", "  ana: message 3", "  ana: message 4", "  ana: message 5"])
            try await ben.type("older", shows: "ana: message 1")
            try await ben.type("older", shows: "there are no older messages")
            for (mistake, answer) in [
                ("dance", "dance is no command; help lists them"), ("say", "write: say TEXT"),
                ("sign-in ana", "ben is signed in; sign out first"), ("token", "a token of FCM has 1 to 1,024"),
            ] {
                try await ben.type(mistake, shows: answer)
            }
            // A message that was written without a network survives a kill.
            try await ben.type("network none", shows: "ben, offline, no network")
            try ben.write("say I write from the cellar")
            try await ben.type("waiting", shows: "waiting: 1")
            ben.kill()
            ben = try startJava("phone-ben")
            try await ben.type("sign-in ben", shows: "ben: I write from the cellar")
            try await ana.type("messages", shows: "ben: I write from the cellar")
            // The line comes with the operation's result, and would replace the reply to a command before.
            try await ben.shows("the message is sent")
            try await ben.type("waiting", shows: "waiting: 0")
            try await ben.type("summary", shows: "unconfirmed: 0, at the service: 0")
            // A suspended conversation receives nothing; resumed, it has the messages.
            try await ben.type("suspend", shows: "the conversation is suspended")
            try await ana.type("say are you there?", shows: "ana: are you there?")
            // His own message goes up and down again after hers, so hers would be there.
            try ben.write("say I am not listening")
            try await ana.shows("ben: I am not listening")
            #expect(!ben.screen.contains("  ana: are you there?"))
            try await ben.type("resume", shows: "ana: are you there?")
            try ben.write("token a-token-of-firebase")
            try await ben.type("sign-out", shows: "not signed in")
            #expect(try await ben.quit() == 0)
        }

        private func startJava(_ device: String) throws -> TerminalApp {
            let file = URL(filePath: try requireValue(commandFile, "MSS_TEST_JAVA is not set"))
            let command = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
            return try TerminalApp(
                command + ["com.example.field.FieldTerminal", device, backendAddress], named: device, in: folder)
        }

        // MARK: Processes

        /// Makes an instance like that of the tutorial, and folders of devices.
        private func prepareInstance(_ instance: String, devices: [String]) async throws {
            try await prepare("mssctl instance create \(instance) --relay-url \(backendAddress)/operations")
            for name in ["Incident", "FIELD_CHAT", "MSS_RESOURCES", "MSS_BADGES"] {
                try await prepare("mssctl config create \(name) --instance \(instance) --repush all")
            }
            for device in devices {
                try await prepare("mkdir \(device)")
                try await prepare(
                    "mssctl instance meta-config \(instance) --server 127.0.0.1 --port 7443 > \(device)/meta.config")
                try await prepare("cp .local/tls/ca.pem \(device)/mss-ca.pem")
            }
        }

        private func start(_ device: String) throws -> TerminalApp {
            let program = StackPlan.binaries.appending(path: "mss-field-service").path
            return try TerminalApp(
                [program, "app", "--folder", device, "--backend", backendAddress], named: device, in: folder)
        }

        /// Starts the backend and waits until it has pushed its data.
        private func startBackend(instance: String = "field_app") async throws -> Supervised {
            let backend = Supervised(
                name: "field-backend", executable: StackPlan.binaries.appending(path: "mss-field-service"),
                arguments: [
                    "backend", "--folder", folder.appending(path: "backend").path, "--port", "\(stack.operationsPort)",
                    "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", instance,
                ], environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path],
                log: folder.appending(path: "backend.log"))
            try backend.start()
            try await eventually("the backend listens", within: .seconds(30)) {
                (try? await stack.get("\(backendAddress)/photos/none").status) == 404
            }
            return backend
        }
    }
}
