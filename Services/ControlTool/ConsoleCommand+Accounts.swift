import ArgumentParser
import Credentials
import Crypto
import PostgreSQL
import SyncModel
import SyncStore

extension ConsoleCommand {
    /// `mssctl console accounts`: the people who may use the console, and what for (spec C8, C11).
    struct Accounts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "accounts", abstract: "Lists, invites and removes accounts, and gives them roles.",
            discussion: postgresHint, subcommands: [List.self, Invite.self, Role.self, Remove.self],
            defaultSubcommand: List.self)

        private static let limit = Duration.seconds(5)
        /// Accounts of one question.
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
                "Prints the address at which a person chooses the password; makes the account where there is none.",
            discussion: "The address is good once, for a day; earlier ones are void.")
        @Argument(help: "The account's name.")
        var name: String
        @OptionGroup var place: Place
        @Option(help: "Of a new account: viewer, operator or administrator.")
        var role = ConsoleRole.viewer
        @Option(help: "The console's address.")
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
                    throw ValidationError("somebody else has just made or removed the account \(name); do it again")
                }
                print("\(console)/choose-password#\(HexText.of(token))")
            }
        }
    }

    struct Role: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Gives an account a role at an instance, or takes it away.")
        @Argument(help: "The account's name.")
        var name: String
        @Argument(help: "viewer, operator, administrator, or none.")
        var role: String
        @OptionGroup var place: Place

        func run() async throws {
            let role = ConsoleRole(word: role)
            guard role != nil || self.role == "none" else {
                throw ValidationError("a role is viewer, operator, administrator, or none")
            }
            try ConsoleCommand.Accounts.with { connection in
                var account = try account(name, on: connection)
                account.grants[try place.instanceID(connection)] = role
                if let fault = account.fault { throw ValidationError(fault) }
                guard try connection.run(AccountStore.modify(account, by: ControlClient.actor), within: limit) else {
                    throw ValidationError("somebody changed it meanwhile; look at it again")
                }
                print(account.line)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Removes an account and signs it out.")
        @Argument(help: "The account's name.")
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

    /// Where a role holds.
    struct Place: ParsableArguments {
        @Option(help: "The instance at which the role holds.")
        var instance: String?
        @Flag(help: "It holds at every instance, and for the service itself.")
        var everywhere = false

        /// - Throws: when neither or both are named, or there is no such instance.
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
    /// As the console and its API spell it.
    package init?(argument: String) { self.init(word: argument) }
}

extension ConsoleAccount {
    /// One line of the list.
    fileprivate var line: String {
        let state = !isEnabled ? "disabled" : hasPassword ? "enabled" : "invited"
        let roles = rolesByInstance.sorted { $0.key < $1.key }
            .map { "\($0.key.isEmpty ? "everywhere" : OneLine.of($0.key)): \($0.value)" }.joined(separator: ", ")
        return "\(name)\t\(state)\t\(hasSecondFactor ? "second factor" : "password alone")\t\(roles)"
    }
}
