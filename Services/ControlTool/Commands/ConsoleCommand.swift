import ArgumentParser
import Credentials
import Crypto
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore
import ToolSupport

/// `mssctl console`: invites an administrator, also when no administrator can sign in (SEC14).
struct ConsoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "console", abstract: "Manages access to the console.", subcommands: [Invite.self, Accounts.self])

    static let postgresHint = """
        Reads MSS_POSTGRES_HOST, _PORT, _DATABASE, _USER, _PASSWORD, _TLS and its files, MSS_ENVIRONMENT; the user \
        must be the one for migrations.
        """

    struct Invite: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints an address for the name and password of a service administrator.",
            discussion: """
                The address works once and for one day. A new address makes earlier ones invalid. With --first an \
                unused address stays valid, and the command says so. Anyone with the address can control the service. \
                The invitation is recorded. \(postgresHint)
                """)

        @Option(help: "Address of the console.")
        var console = "http://127.0.0.1:7090"
        @Flag(help: "Invite only if no administrator exists; prints no new address if one is invited.")
        var first = false

        func run() async throws {
            let connection = try ToolSettings.database()
            defer { connection.close() }
            if first {
                if try connection.run(AccountStore.hasAdministrator, within: .seconds(5)) { return }
                if let until = try connection.run(AccountStore.administratorInvitedUntil, within: .seconds(5)) {
                    print(
                        "\(console) (the earlier address for the first administrator is valid until \(until.text); "
                            + "mssctl console invite prints a new one)")
                    return
                }
            }
            let token = RandomBytes.make(32)
            let digest = Array(SHA256.hash(data: token))
            try connection.run(
                AccountStore.inviteAdministrator(digest: digest, by: ControlClient.actor), within: .seconds(5))
            print(
                "\(console)/setup#\(HexText.of(token))\(first ? " (creates the first administrator; works once)" : "")")
        }
    }
}
