import ArgumentParser
import BusMessages
import Credentials
import Foundation
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl revoke`: revokes user sessions, like a tenant's backend.
struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Revokes sessions of a user: checked data is no longer sent on them.",
        discussion: """
            Afterwards a device receives checked data only after a new connect or bind with a valid verdict. If a \
            broker is configured and --api is absent, the oplog writers revoke the sessions and write an audit record. \
            Otherwise the tool calls the API like a backend.
            """)

    @OptionGroup var api: APIClient
    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The user.")
    var user: String
    @Option(help: "File with the session id, - for standard input; every session of the user when absent.")
    var sessionFile: String?

    func run() async throws {
        var members = ["userId": user]
        let session = try sessionFile.map(Self.session)
        if try api.goesToWriters { return try await revoke(session) }
        members["sessionId"] = session
        try APIClient.show(try await api.call("session/revoke", [("instanceId", instance)], body: members))
    }

    private func revoke(_ session: String?) async throws {
        let sessions = Mss_Bus_V1_RevokeSessions.with {
            $0.instanceID = instance
            $0.userID = user
            if let session { $0.sessionDigest = Data(SessionDigest.of(session)) }
        }
        try await ControlClient.with { client in
            _ = try await client.instance(sessions.instanceID)
            let reply = try await client.operate { $0.revokeSessions = sessions }.revoke
            let answer = OperatorAnswer(.success)
            try (reply.uncertain ? OperatorAnswer.uncertain : answer).show()
        }
    }

    /// A session id is a secret. It must not be an argument, because every user of the machine can read arguments.
    static func session(in file: String) throws -> String {
        // Spaces can be part of the session id.
        let session = try SecretFile.text(of: file, without: .newlines)
        guard !session.isEmpty else { throw ValidationError("--session-file is empty") }
        return session
    }
}
