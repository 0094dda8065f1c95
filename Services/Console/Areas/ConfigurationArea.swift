import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Configurations from their creation to their end (spec C2 to C5, C10).
struct ConfigurationArea: Sendable {
    /// Rows of one page of the list.
    private static let pageRows = 50

    let desk: ControlDesk

    /// A page of the list.
    struct List: Encodable, Sendable {
        let configurations: [ConfigurationItem]
        /// Of the whole list, as filtered.
        let total: Int
        let page: Int
        let pages: Int

        // For pages alone.
        let search: String
        let isOnline: Bool
        let isOffline: Bool
        let isEmpty: Bool
        let before: String?
        let after: String?
        let newPage: String
        let rollouts: String
        let mayChange: Bool

        private enum CodingKeys: String, CodingKey { case configurations, total, page, pages }
    }

    /// One configuration, or the form for a new one.
    struct Form: Encodable, Sendable {
        let configuration: ConfigurationItem

        // For pages alone.
        let isNew: Bool
        let isEdited: Bool
        let mayChange: Bool
        let list: String
        let api: String
        let method: String
        let instanceVerdictSeconds: Int64

        private enum CodingKeys: String, CodingKey { case configuration }
    }

    var routes: [Route] {
        let one = "/instances/{instance}/configurations/{bizType}"
        return reading + [
            Route(
                method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/configurations"),
                access: .instance(.operations), summary: "Creates a configuration; it is online at once.",
                inputs: ConfigurationInput.inputs, example: AnswerExamples.configuration
            ) { exchange throws(ConsoleFault) in
                let configuration = try exchange.input(ConfigurationInput.self)
                    .configuration(of: exchange.instanceID, old: nil)
                guard desk.directory.configuration(exchange.instanceID, configuration.bizType) == nil else {
                    throw .exists("bizType")
                }
                let message = configuration.bus
                let made = try await desk.change(by: try exchange.signedIn()) { $0.createConfiguration = message }
                try desk.requireCopy(of: made)
                return try item(exchange, configuration.bizType.text, status: 201)
            },
            Route(
                method: .put, pattern: RoutePattern("/api/v1" + one), access: .instance(.operations),
                summary: "Changes a configuration that still has the revision given.",
                inputs: ConfigurationInput.inputs, example: AnswerExamples.configuration
            ) { exchange throws(ConsoleFault) in
                let input = try exchange.input(ConfigurationInput.self)
                guard let revision = input.revision else { throw .wrong("revision", "fault.missing") }
                let (id, name) = (exchange.instanceID, exchange.part("bizType"))
                let old = try await desk.current(revision, \.revision) { () throws(ConsoleFault) in
                    try desk.configuration(id, name)
                }
                let message = try input.configuration(of: exchange.instanceID, old: old).bus
                let made = try await desk.change(by: try exchange.signedIn()) { $0.modifyConfiguration = message }
                try desk.requireCopy(of: made)
                return try item(exchange, exchange.part("bizType"))
            },
            switching("online", true, "Takes pushes again, and sends what waited."),
            switching("offline", false, "Refuses pushes and holds back what is stored."),
            Route(
                method: .delete, pattern: RoutePattern("/api/v1" + one), access: .instance(.operations),
                needsPassword: true, summary: "Deletes a configuration that is offline."
            ) { exchange throws(ConsoleFault) in
                let configuration = try desk.configuration(exchange.instanceID, exchange.part("bizType"))
                guard !configuration.isOnline else { throw .refused(exchange.words.text("fault.deleteOnline")) }
                let name = name(exchange)
                try await desk.change(by: try exchange.signedIn()) { $0.deleteConfiguration = name }
                return .done
            },
        ]
    }

    private var reading: [Route] {
        let all = "/instances/{instance}/configurations"
        let access = Access.instance(.viewer)
        let queries = [
            RouteInput("search", "Part of a Sync ID."), RouteInput("online", "yes or no; absent: both."),
            RouteInput("page", .whole, "From 1 on."),
        ]
        return [
            Route(method: .get, pattern: RoutePattern(all), access: access, summary: "The list.") {
                exchange throws(ConsoleFault) in
                .page(page(exchange, "configurations", "tab.configurations", content: try list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + all), access: access,
                summary: "Configurations of an instance in the order of their Sync IDs, 50 to a page.",
                queries: queries, example: AnswerExamples.configurations
            ) { exchange throws(ConsoleFault) in .json(try list(exchange)) },
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/new-configuration"),
                access: .instance(.operations), summary: "The form for a new one."
            ) { exchange throws(ConsoleFault) in
                .page(page(exchange, "configuration", "title.newConfiguration", content: try newForm(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern(all + "/{bizType}"), access: access, summary: "One configuration."
            ) { exchange throws(ConsoleFault) in
                .page(
                    page(
                        exchange, "configuration", "title.configuration", exchange.part("bizType"),
                        content: try form(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + all + "/{bizType}"), access: access,
                summary: "One configuration.", example: AnswerExamples.configuration
            ) { exchange throws(ConsoleFault) in try item(exchange, exchange.part("bizType")) },
        ]
    }

    private func switching(_ word: String, _ isOnline: Bool, _ summary: String) -> Route {
        Route(
            method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/configurations/{bizType}/\(word)"),
            access: .instance(.operations), summary: summary, example: AnswerExamples.configuration
        ) { exchange throws(ConsoleFault) in
            let name = name(exchange)
            let made = try await desk.change(by: try exchange.signedIn()) {
                $0.switchConfiguration = .with {
                    $0.name = name
                    $0.online = isOnline
                }
            }
            try desk.requireCopy(of: made)
            return try item(exchange, exchange.part("bizType"))
        }
    }

    private func name(_ exchange: Exchange) -> Mss_Bus_V1_ConfigurationName {
        .with {
            $0.instanceID = exchange.instanceID.text
            $0.bizType = exchange.part("bizType")
        }
    }

    private func item(_ exchange: Exchange, _ bizType: String, status: Int = 200) throws(ConsoleFault) -> ConsoleAnswer
    {
        .json(ConfigurationItem(try desk.configuration(exchange.instanceID, bizType), exchange.words), status: status)
    }

    private func page(
        _ exchange: Exchange, _ template: String, _ title: String, _ detail: String = "", content: any Sendable
    ) -> PageContent {
        PageContent(
            template: template, title: title, detail: detail, tab: .configurations, instanceID: exchange.instanceID,
            content: content)
    }

    private func list(_ exchange: Exchange) throws(ConsoleFault) -> List {
        _ = try desk.instance(exchange.instanceID)
        let search = (exchange.query["search"] ?? "").trimmed
        let online = exchange.query["online"]
        let found = desk.directory.configurations(of: exchange.instanceID).filter { one in
            (search.isEmpty || one.bizType.text.range(of: search, options: .caseInsensitive) != nil)
                && (online != "yes" || one.isOnline) && (online != "no" || !one.isOnline)
        }
        let pages = max(1, (found.count + Self.pageRows - 1) / Self.pageRows)
        let number = Int(exchange.number("page", in: 1...Int64(pages), default: 1))
        let rows = found.dropFirst((number - 1) * Self.pageRows).prefix(Self.pageRows)
        func address(_ page: Int) -> String? {
            guard page != number, (1...pages).contains(page) else { return nil }
            return Paths.page(
                exchange.instanceID, "configurations",
                query: [("search", search), ("online", online), ("page", "\(page)")])
        }
        return List(
            configurations: rows.map { ConfigurationItem($0, exchange.words) }, total: found.count, page: number,
            pages: pages, search: search, isOnline: online == "yes",
            isOffline: online == "no", isEmpty: found.isEmpty, before: address(number - 1), after: address(number + 1),
            newPage: Paths.page(exchange.instanceID, "new-configuration"),
            rollouts: Paths.page(exchange.instanceID, "rollouts"), mayChange: mayChange(exchange))
    }

    private func form(_ exchange: Exchange) throws(ConsoleFault) -> Form {
        let instance = try desk.instance(exchange.instanceID)
        let configuration = try desk.configuration(exchange.instanceID, exchange.part("bizType"))
        let item = ConfigurationItem(configuration, exchange.words)
        let mayChange = mayChange(exchange)
        return Form(
            configuration: item, isNew: false, isEdited: mayChange && exchange.query["edit"] != nil,
            mayChange: mayChange, list: Paths.page(instance.id, "configurations"), api: item.api, method: "PUT",
            instanceVerdictSeconds: instance.verdictLifetime.components.seconds)
    }

    private func newForm(_ exchange: Exchange) throws(ConsoleFault) -> Form {
        let instance = try desk.instance(exchange.instanceID)
        let preselected = SyncConfiguration(
            instanceID: instance.id, bizType: BizType(""), description: "", kind: .user, isMultiDevice: true,
            isPersistent: true, repush: .threshold(Limits.defaultThreshold), checksSession: false, isOnline: true)
        return Form(
            configuration: ConfigurationItem(preselected, exchange.words), isNew: true, isEdited: true, mayChange: true,
            list: Paths.page(instance.id, "configurations"),
            api: "/api/v1" + Paths.page(instance.id, "configurations"), method: "POST",
            instanceVerdictSeconds: instance.verdictLifetime.components.seconds)
    }

    private func mayChange(_ exchange: Exchange) -> Bool {
        Access.instance(.operations).allows(exchange.visitor?.account, instance: exchange.instanceID)
    }
}
