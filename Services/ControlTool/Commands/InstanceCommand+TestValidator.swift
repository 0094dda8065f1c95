import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel

extension InstanceCommand {
    /// Requests a verdict from the tenant, as a gateway does (C8).
    struct TestValidator: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Requests a verdict for one session from the tenant and prints it.",
            discussion: "The exit code is 1 if the verdict is unknown.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "The user.")
        var user: String
        @Option(help: "File with the session id, - for standard input.")
        var sessionFile: String

        func run() async throws {
            let (instance, user) = (instance, user)
            let session = try RevokeCommand.session(in: sessionFile)
            try await ControlClient.with(answers: [.verdicts]) { client in
                _ = try await client.instance(instance)
                let reply = try await client.verdict(of: session, user: user, instance: instance)
                print(reply.words)
                if reply.verdict != .valid, reply.verdict != .invalid { throw ExitCode.failure }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One instance, with one line for each setting.")
        @Argument(help: "Instance id.")
        var id: String

        func run() async throws {
            let id = id
            try await ControlClient.with { print(try await $0.instance(id).page) }
        }
    }
}

extension Mss_Bus_V1_ValidateReply {
    fileprivate var words: String {
        reason.isEmpty ? verdict.word : "\(verdict.word): \(TerminalText.of(reason))"
    }
}

extension Instance {
    private var asked: String {
        guard !validatorURL.isEmpty else { return "no session check" }
        guard case .mobileGateway(let gateway) = validatorForm else { return "as JSON over HTTP" }
        return "through the mobile gateway of \(gateway.workspaceID), app \(gateway.appID)"
            + (gateway.wrapsBody ? ", the request under _requestBody" : "")
    }

    /// One line for each setting.
    fileprivate var page: String {
        [
            ("instance", id.text), ("name", name), ("enabled", isEnabled ? "yes" : "no"), ("validator", validatorURL),
            ("asked", asked), ("verdict lifetime", "\(verdictLifetime.components.seconds) s"),
            ("retention", "\(retention.components.seconds / 86_400) days"),
            ("signature required", requiresSignature ? "yes" : "no"), ("binds devices", bindsDevices ? "yes" : "no"),
            ("latest connection owns", latestConnectionOwns ? "yes" : "no"),
            ("session length", "\(sessionUnits)"), ("limits without a key", LimitArguments.text(of: limits)),
            ("relay", relayURL), ("revision", "\(revision)"),
        ].map { "\($0.0): \(TerminalText.of($0.1))" }.joined(separator: "\n")
    }
}
