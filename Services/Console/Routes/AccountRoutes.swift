import Foundation
import ServiceKit
import SyncModel
import SyncStore

/// The accounts of the console and their roles (C8).
struct AccountRoutes: Sendable {
    /// Accounts of one page of the list.
    private static let pageRows = 50

    let database: Database
    let control: ControlService

    /// A role at an instance, with its text.
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
        /// Roles by instance id; the empty id means every instance and the service itself.
        let roles: [String: String]
        let invited: Bool
        let secondFactor: Bool
        let revision: Int

        // For pages alone.
        let grants: [Grant]
        let page: String
        let api: String
        let isSelf: Bool
        /// The path of the account's audit records.
        let records: String

        private enum CodingKeys: String, CodingKey { case name, enabled, roles, invited, secondFactor, revision }
    }

    /// An instance at which an account can have a role.
    struct Choice: Sendable {
        let id: String
        /// Whether it is the instance of the page.
        let isChosen: Bool
    }

    /// A page of the list.
    struct List: Encodable, Sendable {
        let accounts: [Item]
        /// The value of `after` for the next page; absent on the last page.
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
                    + "means every instance and the service itself."),
            RouteInput("enabled", .flag, "Whether the account may sign in."),
        ]
        return [
            Route(method: .get, pattern: RoutePattern("/accounts"), access: administrator, summary: "The accounts.") {
                request throws(ConsoleFault) in
                .page(PageContent(template: "accounts", title: "title.accounts", content: try await list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/accounts"), access: administrator,
                summary: "Accounts in the order of their names.",
                queries: [RouteInput("after", "The `next` of the previous page.")], example: AnswerExamples.accounts
            ) { request throws(ConsoleFault) in .json(try await list(request)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/accounts"), access: administrator, needsPassword: true,
                summary:
                    "Creates an account. The invitation in the answer sets its password, once and within a day.",
                inputs: [RouteInput("name", required: true, "1 to 64 letters, digits, '-', '_', '.' or '@'.")] + inputs,
                example: AnswerExamples.invitation
            ) { request throws(ConsoleFault) in try await create(request) },
            Route(
                method: .get, pattern: RoutePattern("/accounts/{name}"), access: administrator, summary: "One account."
            ) { request throws(ConsoleFault) in
                let page = Page(
                    account: try await item(request), instances: instances(request))
                return .page(
                    PageContent(
                        template: "account", title: "title.account", detail: request.part("name"), content: page))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/accounts/{name}"), access: administrator,
                summary: "One account.", example: AnswerExamples.account
            ) { request throws(ConsoleFault) in .json(try await item(request)) },
            Route(
                method: .put, pattern: RoutePattern("/api/v1/accounts/{name}"), access: administrator,
                needsPassword: true, summary: "Changes the roles of an account that still has the given revision.",
                inputs: inputs + [RouteInput("revision", .whole, required: true, "The revision that was read.")],
                example: AnswerExamples.account
            ) { request throws(ConsoleFault) in try await modify(request) },
            Route(
                method: .delete, pattern: RoutePattern("/api/v1/accounts/{name}"), access: administrator,
                needsPassword: true, summary: "Removes an account and signs it out."
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                let old = try await account(request)
                guard old.name != principal.account.name else { throw .refused(request.words.text("fault.self")) }
                _ = try await database.run(AccountStore.remove(old.name, by: principal.actor))
                return .done
            },
            Route(
                method: .delete, pattern: RoutePattern("/api/v1/accounts/{name}/second-factor"), access: administrator,
                needsPassword: true, summary: "Removes the second factor of an account whose owner has lost it."
            ) { request throws(ConsoleFault) in
                let (principal, name) = (try request.signedIn(), try await account(request).name)
                // For its own second factor an account must give a code, on another route.
                guard name != principal.account.name else { throw .refused(request.words.text("fault.self")) }
                _ = try await database.run(
                    AccountStore.setSecondFactor([], step: 0, of: name, by: principal.actor))
                return .done
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/accounts/{name}/invitation"), access: administrator,
                needsPassword: true,
                summary: "Creates a new invitation to choose a password; earlier ones become invalid.",
                example: AnswerExamples.invitation
            ) { request throws(ConsoleFault) in
                let name = try await account(request).name
                let token = SessionToken()
                let invite = AccountStore.invite(name, digest: token.digest, by: try request.signedIn().actor)
                guard try await database.run(invite) else { throw .noSuch("account", name) }
                return .json(["invitation": Self.address(of: token)])
            },
        ]
    }

    private func create(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let input = try request.input(Input.self)
        let account = ConsoleAccount(name: (input.name ?? "").trimmed, grants: try grants(of: input))
        if account.fault != nil { throw .wrong("name", "fault.accountName") }
        let token = SessionToken()
        let create = AccountStore.create(account, invitation: token.digest, by: try request.signedIn().actor)
        guard try await database.run(create) else { throw .exists("name") }
        return .json(["invitation": Self.address(of: token)], status: 201)
    }

    private func modify(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let principal = try request.signedIn()
        let input = try request.input(Input.self)
        guard let revision = input.revision else { throw .wrong("revision", "fault.missing") }
        let old = try await account(request)
        var account = old
        account.grants = try grants(of: input)
        account.isEnabled = input.enabled ?? old.isEnabled
        account.revision = revision
        let losesRights = account.grants[ConsoleAccount.everyInstance] != .administrator || !account.isEnabled
        // Otherwise the last administrator could lock the account out, which only the command line can repair.
        if old.name == principal.account.name, losesRights { throw .refused(request.words.text("fault.self")) }
        guard try await database.run(AccountStore.modify(account, by: principal.actor)) else { throw .stale }
        return .json(try await item(request))
    }

    private func grants(of input: Input) throws(ConsoleFault) -> [InstanceID: ConsoleRole] {
        var grants: [InstanceID: ConsoleRole] = [:]
        for (instance, word) in input.roles where !word.isEmpty {
            guard let role = ConsoleRole(word: word) else {
                throw .wrong("roles", "fault.choice", ConsoleRole.allCases.map(\.word).joined(separator: ", "))
            }
            guard instance.isEmpty || control.directory.instance(InstanceID(instance)) != nil else {
                throw .wrong("roles", "fault.noSuch.instance", instance)
            }
            grants[InstanceID(instance)] = role
        }
        guard !grants.isEmpty else { throw .wrong("roles", "fault.noRole") }
        return grants
    }

    /// The path of the page on which the account chooses its password. The token is in the fragment, which browsers do
    /// not send.
    private static func address(of invitation: SessionToken) -> String { "/choose-password#\(invitation.text)" }

    private func account(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAccount {
        let name = request.part("name")
        guard let account = try await database.run(AccountStore.account(name)) else { throw .noSuch("account", name) }
        return account
    }

    private func item(_ request: ConsoleRequest) async throws(ConsoleFault) -> Item {
        item(try await account(request), request)
    }

    private func list(_ request: ConsoleRequest) async throws(ConsoleFault) -> List {
        let query = AccountStore.page(after: request.query["after"] ?? "", limit: Self.pageRows + 1)
        let accounts = try await database.run(query)
        let rows = accounts.prefix(Self.pageRows)
        return List(
            accounts: rows.map { item($0, request) },
            next: accounts.count > rows.count ? rows.last?.name : nil,
            instances: instances(request))
    }

    private func instances(_ request: ConsoleRequest) -> [Choice] {
        let chosen = request.chosenInstance(in: control.directory)?.id
        return control.directory.instances.map { Choice(id: $0.id.text, isChosen: $0.id == chosen) }
    }

    private func item(_ account: ConsoleAccount, _ request: ConsoleRequest) -> Item {
        let page = "/accounts/\(account.name)"
        return Item(
            name: account.name, enabled: account.isEnabled, roles: account.rolesByInstance,
            invited: !account.hasPassword, secondFactor: account.hasSecondFactor, revision: account.revision,
            grants: Self.grants(of: account, request.words), page: page, api: "/api/v1" + page,
            isSelf: account.name == request.principal?.account.name,
            records: "/records" + Paths.query([("actor", "console:\(account.name)")]))
    }

    /// The roles of an account with their texts, the service's first.
    static func grants(of account: ConsoleAccount, _ words: PageTexts) -> [Grant] {
        account.grants.sorted { $0.key.text < $1.key.text }.map { instance, role in
            Grant(
                instance: instance.text, role: role.word, roleWord: words.text("role.\(role.word)"),
                isEverywhere: instance == ConsoleAccount.everyInstance, isViewer: role == .viewer,
                isOperator: role == .operations, isAdministrator: role == .administrator)
        }
    }
}
