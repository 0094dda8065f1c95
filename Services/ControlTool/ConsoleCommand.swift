import ArgumentParser
import Credentials
import Crypto
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore

/// `mssctl console`: the first administrator's way in, and back in for one who is locked out (reliability SEC14).
struct ConsoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "console", abstract: "Who may use the console.", subcommands: [Invite.self, Accounts.self])

    static let postgresHint = """
        Reads MSS_POSTGRES_HOST, _PORT, _DATABASE, _USER, _PASSWORD, _TLS and its files, MSS_ENVIRONMENT; the user is \
        the one that migrates.
        """

    struct Invite: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the address at which an administrator of the service chooses name and password.",
            discussion: """
                The address is good once, for a day; earlier ones are void, but with --first one that nobody has used \
                stays good, and that is said instead. Whoever has it owns the service. It is recorded. \(postgresHint)
                """)

        @Option(help: "The console's address.")
        var console = "http://127.0.0.1:7090"
        @Flag(help: "Only when no administrator can sign in yet; prints nothing otherwise, or that one is invited.")
        var first = false

        func run() async throws {
            let connection = try ToolSettings.database()
            defer { connection.close() }
            if first {
                if try connection.run(AccountStore.hasAdministrator, within: .seconds(5)) { return }
                if let until = try connection.run(AccountStore.administratorInvitedUntil, within: .seconds(5)) {
                    print(
                        "\(console) (the address printed before makes the first administrator until \(until.text); "
                            + "mssctl console invite makes another)")
                    return
                }
            }
            let token = RandomBytes.make(32)
            let digest = Array(SHA256.hash(data: token))
            try connection.run(
                AccountStore.inviteAdministrator(digest: digest, by: ControlClient.actor), within: .seconds(5))
            print("\(console)/setup#\(HexText.of(token))\(first ? " (makes the first administrator; good once)" : "")")
        }
    }
}
