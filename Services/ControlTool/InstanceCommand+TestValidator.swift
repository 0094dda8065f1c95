import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel

extension InstanceCommand {
    /// Asks the tenant, as a gateway would (spec C8).
    struct TestValidator: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Has the tenant asked about one session, and says what it answered.",
            discussion: "Ends with 1 when no answer came that decides anything.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "The user.")
        var user: String
        @Option(help: "A file that holds the session's id, - for standard input.")
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
        static let configuration = CommandConfiguration(abstract: "One instance, a line for each of its settings.")
        @Argument(help: "Its id.")
        var id: String

        func run() async throws {
            let id = id
            try await ControlClient.with { print(try await $0.instance(id).page) }
        }
    }
}

extension Mss_Bus_V1_ValidateReply {
    fileprivate var words: String {
        let word =
            switch verdict {
            case .valid: "valid"
            case .invalid: "invalid"
            default: "unknown"
            }
        return reason.isEmpty ? word : "\(word): \(OneLine.of(reason))"
    }
}

extension Instance {
    private var asked: String {
        guard !validatorURL.isEmpty else { return "no session check" }
        guard case .mobileGateway(let gateway) = validatorForm else { return "as JSON over HTTP" }
        return "through the mobile gateway of \(gateway.workspaceID), app \(gateway.appID)"
            + (gateway.wrapsBody ? ", the question under _requestBody" : "")
    }

    /// Every setting on a line of its own.
    fileprivate var page: String {
        [
            ("instance", id.text), ("name", name), ("enabled", isEnabled ? "yes" : "no"), ("validator", validatorURL),
            ("asked", asked), ("verdict lifetime", "\(verdictLifetime.components.seconds) s"),
            ("retention", "\(retention.components.seconds / 86_400) days"),
            ("signature required", requiresSignature ? "yes" : "no"), ("binds devices", bindsDevices ? "yes" : "no"),
            ("latest connection owns", latestConnectionOwns ? "yes" : "no"),
            ("session length", "\(sessionUnits)"), ("limits without a key", LimitArguments.words(limits)),
            ("relay", relayURL), ("revision", "\(revision)"),
        ].map { "\($0.0): \(OneLine.of($0.1))" }.joined(separator: "\n")
    }
}
