import ArgumentParser
import Credentials
import Crypto
import PostgreSQL
import SyncModel
import SyncStore
import ToolSupport

extension ConsoleCommand {
    /// `mssctl console accounts`: the accounts of the console and their roles (C8, C11).
    struct Accounts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "accounts", abstract: "Lists, invites and removes accounts, and changes their roles.",
            discussion: postgresHint, subcommands: [List.self, Invite.self, Role.self, Remove.self],
            defaultSubcommand: List.self)

        private static let limit = Duration.seconds(5)
        /// Number of accounts per query.
        private static let pageRows = 200
    }
}

extension ConsoleCommand.Accounts {
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One line for each account, by name.")

        func run() async throws {
            try ConsoleCommand.Accounts.with { connection in
                var last = ""
                while true {
                    let query = AccountStore.page(after: last, limit: pageRows)
                    let accounts = try connection.run(query, within: limit)
                    for account in accounts { print(account.line) }
                    guard accounts.count == pageRows, let name = accounts.last?.name else { return }
                    last = name
                }
            }
        }
    }

    struct Invite: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Prints an address for choosing the password; creates the account if it does not exist.",
            discussion: "The address works once and for one day; earlier addresses become invalid.")
        @Argument(help: "Name of the account.")
        var name: String
        @OptionGroup var place: Place
        @Option(help: "Role of a new account: viewer, operator or administrator.")
        var role = ConsoleRole.viewer
        @Option(help: "Address of the console.")
        var console = "http://127.0.0.1:7090"

        func run() async throws {
            try ConsoleCommand.Accounts.with { connection in
                let token = RandomBytes.make(32)
                let (digest, actor) = (Array(SHA256.hash(data: token)), ControlClient.actor)
                let isNew = try connection.run(AccountStore.account(name), within: limit) == nil
                let isDone: Bool
                if isNew {
                    let account = ConsoleAccount(name: name, grants: [try place.instanceID(connection): role])
                    if let fault = account.fault { throw ValidationError(fault) }
                    let create = AccountStore.create(account, invitation: digest, by: actor)
                    isDone = try connection.run(create, within: limit)
                } else {
                    isDone = try connection.run(AccountStore.invite(name, digest: digest, by: actor), within: limit)
                }
                guard isDone else {
                    throw ValidationError(
                        "the account \(name) was created or removed at the same time; repeat the command")
                }
                print("\(console)/choose-password#\(HexText.of(token))")
            }
        }
    }

    struct Role: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sets or removes the role of an account for an instance.")
        @Argument(help: "Name of the account.")
        var name: String
        @Argument(help: "viewer, operator, administrator or none.")
        var role: String
        @OptionGroup var place: Place

        func run() async throws {
            let role = ConsoleRole(word: role)
            guard role != nil || self.role == "none" else {
                throw ValidationError("the role must be viewer, operator, administrator or none")
            }
            try ConsoleCommand.Accounts.with { connection in
                var account = try account(name, on: connection)
                account.grants[try place.instanceID(connection)] = role
                if let fault = account.fault { throw ValidationError(fault) }
                guard try connection.run(AccountStore.modify(account, by: ControlClient.actor), within: limit) else {
                    throw ValidationError("the account was changed at the same time; check it and repeat the command")
                }
                print(account.line)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Removes an account and signs it out.")
        @Argument(help: "Name of the account.")
        var name: String

        func run() async throws {
            try ConsoleCommand.Accounts.with { connection in
                guard try connection.run(AccountStore.remove(name, by: ControlClient.actor), within: limit) else {
                    throw ValidationError("there is no account \(name); see mssctl console accounts list")
                }
                print("remove \(name): done")
            }
        }
    }

    /// The scope of a role.
    struct Place: ParsableArguments {
        @Option(help: "Instance of the role.")
        var instance: String?
        @Flag(help: "The role holds for every instance and for the service itself.")
        var everywhere = false

        /// - Throws: `ValidationError` if neither or both are named, or the instance does not exist.
        func instanceID(_ connection: PostgresConnection) throws -> InstanceID {
            switch (instance, everywhere) {
            case (nil, true): return ConsoleAccount.everyInstance
            case (let id?, false):
                let known = try connection.run(ControlStore.instances, within: limit)
                guard known.contains(where: { $0.id.text == id }) else {
                    throw ValidationError("there is no instance \(id); see mssctl instance list")
                }
                return InstanceID(id)
            default: throw ValidationError("name one of --instance and --everywhere")
            }
        }
    }

    private static func with(_ body: (PostgresConnection) throws -> Void) throws {
        let connection = try ToolSettings.database()
        defer { connection.close() }
        try body(connection)
    }

    private static func account(_ name: String, on connection: PostgresConnection) throws -> ConsoleAccount {
        guard let account = try connection.run(AccountStore.account(name), within: limit) else {
            throw ValidationError("there is no account \(name); see mssctl console accounts list")
        }
        return account
    }
}

extension ConsoleRole: ExpressibleByArgument {
    /// Reads a role in the spelling of the console's API.
    package init?(argument: String) { self.init(word: argument) }
}

extension ConsoleAccount {
    /// One line of the list.
    fileprivate var line: String {
        let state = !isEnabled ? "disabled" : hasPassword ? "enabled" : "invited"
        let roles = rolesByInstance.sorted { $0.key < $1.key }
            .map { "\($0.key.isEmpty ? "everywhere" : TerminalText.of($0.key)): \($0.value)" }.joined(separator: ", ")
        return "\(name)\t\(state)\t\(hasSecondFactor ? "second factor" : "password alone")\t\(roles)"
    }
}
