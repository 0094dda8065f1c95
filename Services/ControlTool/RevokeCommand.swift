import ArgumentParser
import Foundation

/// `mssctl revoke`: ends sessions of a user, as a tenant's backend can.
struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Ends sessions of a user: nothing checked goes out on them any more.",
        discussion: """
            Afterwards a device gets checked data only on a new connect or bind, if the tenant, asked anew, calls its
            session valid.
            """)

    @OptionGroup var api: APIClient
    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The user.")
    var user: String
    @Option(help: "A file that holds the session's id, - for standard input; none: every session of the user.")
    var sessionFile: String?

    func run() async throws {
        var members = ["userId": user]
        members["sessionId"] = try sessionFile.map(Self.session)
        try APIClient.show(try await api.call("session/revoke", [("instanceId", instance)], body: members))
    }

    /// A session is a secret, so it does not stand among the arguments, which everybody on the machine can read.
    static func session(in file: String) throws -> String {
        // Spaces may belong to it.
        let session = try SecretFile.text(of: file, without: .newlines)
        guard !session.isEmpty else { throw ValidationError("--session-file holds no session") }
        return session
    }
}
