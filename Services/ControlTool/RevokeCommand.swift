import ArgumentParser
import BusMessages
import Credentials
import Foundation
import SwiftProtobuf
import SyncModel

/// `mssctl revoke`: ends sessions of a user, as a tenant's backend can.
struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Ends sessions of a user: nothing checked goes out on them any more.",
        discussion: """
            Afterwards a device gets checked data only on a new connect or bind, if the tenant, asked anew, calls its
            session valid. Where a broker is set and no --api is named, the oplog writers are asked, and record who did;
            otherwise the API, as by a backend.
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

    /// A session is a secret, so it does not stand among the arguments, which everybody on the machine can read.
    static func session(in file: String) throws -> String {
        // Spaces may belong to it.
        let session = try SecretFile.text(of: file, without: .newlines)
        guard !session.isEmpty else { throw ValidationError("--session-file holds no session") }
        return session
    }
}
