import Foundation
import ServiceKit
import SyncModel
import SyncStore

/// The people who may use the console, and what for (spec C8).
struct AccountArea: Sendable {
    /// Accounts of one page of the list.
    private static let pageRows = 50

    let database: Database
    let desk: ControlDesk

    /// A role at an instance, in words.
    struct Grant: Sendable {
        let instance: String
        let role: String
        let roleWord: String
        let isEverywhere: Bool
        let isViewer: Bool
        let isOperator: Bool
        let isAdministrator: Bool
    }

    /// An account as the API and the pages show it.
    struct Item: Encodable, Sendable {
        let name: String
        let enabled: Bool
        /// By instance; the empty one stands for all of them and the service.
        let roles: [String: String]
        let invited: Bool
        let secondFactor: Bool
        let revision: Int

        // For pages alone.
        let grants: [Grant]
        let page: String
        let api: String
        let isSelf: Bool
        /// What this person did.
        let records: String

        private enum CodingKeys: String, CodingKey { case name, enabled, roles, invited, secondFactor, revision }
    }

    /// An instance at which an account can be given a role.
    struct Choice: Sendable {
        let id: String
        /// It is the one that is looked at.
        let isChosen: Bool
    }

    /// A page of the list.
    struct List: Encodable, Sendable {
        let accounts: [Item]
        /// Ask on with `after` = this; absent: there are no more.
        let next: String?

        // For pages alone.
        let instances: [Choice]

        private enum CodingKeys: String, CodingKey { case accounts, next }
    }

    /// One account's page.
    struct Page: Sendable {
        let account: Item
        let instances: [Choice]
    }

    private struct Input: Decodable {
        let name: String?
        let roles: [String: String]
        let enabled: Bool?
        let revision: Int?
    }

    var routes: [Route] {
        let administrator = Access.service(.administrator)
        let inputs = [
            RouteInput(
                "roles", .object, required: true,
                "Instance id to viewer, operator or administrator; the id \"\" "
                    + "stands for every instance and the service itself."),
            RouteInput("enabled", .flag, "Whether it may come in."),
        ]
        return [
            Route(method: .get, pattern: RoutePattern("/accounts"), access: administrator, summary: "The accounts.") {
                exchange throws(ConsoleFault) in
                .page(PageContent(template: "accounts", title: "title.accounts", content: try await list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/accounts"), access: administrator,
                summary: "Accounts in the order of their names.",
                queries: [RouteInput("after", "The `next` of the page before.")], example: AnswerExamples.accounts
            ) { exchange throws(ConsoleFault) in .json(try await list(exchange)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/accounts"), access: administrator, needsPassword: true,
                summary:
                    "Creates an account; it comes in by the invitation in the answer, which is good once, for a day.",
                inputs: [RouteInput("name", required: true, "1 to 64 letters, digits, '-', '_', '.' or '@'.")] + inputs,
                example: AnswerExamples.invitation
            ) { exchange throws(ConsoleFault) in try await create(exchange) },
            Route(
                method: .get, pattern: RoutePattern("/accounts/{name}"), access: administrator, summary: "One account."
            ) { exchange throws(ConsoleFault) in
                let page = Page(
                    account: try await item(exchange), instances: instances(exchange))
                return .page(
                    PageContent(
                        template: "account", title: "title.account", detail: exchange.part("name"), content: page))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/accounts/{name}"), access: administrator,
                summary: "One account.", example: AnswerExamples.account
            ) { exchange throws(ConsoleFault) in .json(try await item(exchange)) },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/accounts/{name}"), access: administrator,
                needsPassword: true, summary: "Changes what an account may do, if it still has the revision given.",
                inputs: inputs + [RouteInput("revision", .whole, required: true, "That was read.")],
                example: AnswerExamples.account
            ) { exchange throws(ConsoleFault) in try await modify(exchange) },
            Route(
                method: .delete, pattern: RoutePattern("/api/v1/accounts/{name}"), access: administrator,
                needsPassword: true, summary: "Removes an account and signs it out."
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                let old = try await account(exchange)
                guard old.name != visitor.account.name else { throw .refused(exchange.words.text("fault.self")) }
                _ = try await database.run(AccountStore.remove(old.name, by: visitor.actor))
                return .done
            },
            Route(
                method: .delete, pattern: RoutePattern("/api/v1/accounts/{name}/second-factor"), access: administrator,
                needsPassword: true, summary: "Removes the second factor of somebody who has lost it."
            ) { exchange throws(ConsoleFault) in
                let (visitor, name) = (try exchange.signedIn(), try await account(exchange).name)
                // One's own takes a code.
                guard name != visitor.account.name else { throw .refused(exchange.words.text("fault.self")) }
                _ = try await database.run(
                    AccountStore.setSecondFactor([], step: 0, of: name, by: visitor.actor))
                return .done
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/accounts/{name}/invitation"), access: administrator,
                needsPassword: true, summary: "A new invitation to choose a password; earlier ones are void.",
                example: AnswerExamples.invitation
            ) { exchange throws(ConsoleFault) in
                let name = try await account(exchange).name
                let token = SessionToken()
                let invite = AccountStore.invite(name, digest: token.digest, by: try exchange.signedIn().actor)
                guard try await database.run(invite) else { throw .noSuch("account", name) }
                return .json(["invitation": Self.address(of: token)])
            },
        ]
    }

    private func create(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let input = try exchange.input(Input.self)
        let account = ConsoleAccount(name: (input.name ?? "").trimmed, grants: try grants(of: input))
        if account.fault != nil { throw .wrong("name", "fault.accountName") }
        let token = SessionToken()
        let create = AccountStore.create(account, invitation: token.digest, by: try exchange.signedIn().actor)
        guard try await database.run(create) else { throw .exists("name") }
        return .json(["invitation": Self.address(of: token)], status: 201)
    }

    private func modify(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let visitor = try exchange.signedIn()
        let input = try exchange.input(Input.self)
        guard let revision = input.revision else { throw .wrong("revision", "fault.missing") }
        let old = try await account(exchange)
        var account = old
        account.grants = try grants(of: input)
        account.isEnabled = input.enabled ?? old.isEnabled
        account.revision = revision
        let losesRights = account.grants[ConsoleAccount.everyInstance] != .administrator || !account.isEnabled
        // Whoever locks himself out needs somebody at the command line.
        if old.name == visitor.account.name, losesRights { throw .refused(exchange.words.text("fault.self")) }
        guard try await database.run(AccountStore.modify(account, by: visitor.actor)) else { throw .stale }
        return .json(try await item(exchange))
    }

    private func grants(of input: Input) throws(ConsoleFault) -> [InstanceID: ConsoleRole] {
        var grants: [InstanceID: ConsoleRole] = [:]
        for (instance, word) in input.roles where !word.isEmpty {
            guard let role = ConsoleRole(word: word) else {
                throw .wrong("roles", "fault.choice", ConsoleRole.allCases.map(\.word).joined(separator: ", "))
            }
            guard instance.isEmpty || desk.directory.instance(InstanceID(instance)) != nil else {
                throw .wrong("roles", "fault.noSuch.instance", instance)
            }
            grants[InstanceID(instance)] = role
        }
        guard !grants.isEmpty else { throw .wrong("roles", "fault.noRole") }
        return grants
    }

    /// The way to the page on which the account chooses its password. The token stands behind `#`, which browsers do
    /// not send.
    private static func address(of invitation: SessionToken) -> String { "/choose-password#\(invitation.text)" }

    private func account(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAccount {
        let name = exchange.part("name")
        guard let account = try await database.run(AccountStore.account(name)) else { throw .noSuch("account", name) }
        return account
    }

    private func item(_ exchange: Exchange) async throws(ConsoleFault) -> Item {
        item(try await account(exchange), exchange)
    }

    private func list(_ exchange: Exchange) async throws(ConsoleFault) -> List {
        let query = AccountStore.page(after: exchange.query["after"] ?? "", limit: Self.pageRows + 1)
        let accounts = try await database.run(query)
        let rows = accounts.prefix(Self.pageRows)
        return List(
            accounts: rows.map { item($0, exchange) },
            next: accounts.count > rows.count ? rows.last?.name : nil,
            instances: instances(exchange))
    }

    private func instances(_ exchange: Exchange) -> [Choice] {
        let chosen = exchange.chosenInstance(in: desk.directory)?.id
        return desk.directory.instances.map { Choice(id: $0.id.text, isChosen: $0.id == chosen) }
    }

    private func item(_ account: ConsoleAccount, _ exchange: Exchange) -> Item {
        let page = "/accounts/\(account.name)"
        return Item(
            name: account.name, enabled: account.isEnabled, roles: account.rolesByInstance,
            invited: !account.hasPassword, secondFactor: account.hasSecondFactor, revision: account.revision,
            grants: Self.grants(of: account, exchange.words), page: page, api: "/api/v1" + page,
            isSelf: account.name == exchange.visitor?.account.name,
            records: "/records" + Paths.query([("actor", "console:\(account.name)")]))
    }

    /// Its roles in words, the service's first.
    static func grants(of account: ConsoleAccount, _ words: Words) -> [Grant] {
        account.grants.sorted { $0.key.text < $1.key.text }.map { instance, role in
            Grant(
                instance: instance.text, role: role.word, roleWord: words.text("role.\(role.word)"),
                isEverywhere: instance == ConsoleAccount.everyInstance, isViewer: role == .viewer,
                isOperator: role == .operations, isAdministrator: role == .administrator)
        }
    }
}
