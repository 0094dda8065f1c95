import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Configurations: list, create, change, switch and delete (C2 to C5, C10).
struct ConfigurationRoutes: Sendable {
    /// Rows of one page of the list.
    private static let pageRows = 50

    let control: ControlService

    /// A page of the list.
    struct List: Encodable, Sendable {
        let configurations: [ConfigurationItem]
        /// The number of configurations on all pages of the filtered list.
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
            ) { request throws(ConsoleFault) in
                let configuration = try request.input(ConfigurationInput.self)
                    .configuration(of: request.instanceID, old: nil)
                guard control.directory.configuration(request.instanceID, configuration.bizType) == nil else {
                    throw .exists("bizType")
                }
                let message = configuration.bus
                let made = try await control.change(by: try request.signedIn()) { $0.createConfiguration = message }
                try control.requireCopy(of: made)
                return try item(request, configuration.bizType.text, status: 201)
            },
            Route(
                method: .put, pattern: RoutePattern("/api/v1" + one), access: .instance(.operations),
                summary: "Changes a configuration that still has the given revision.",
                inputs: ConfigurationInput.inputs, example: AnswerExamples.configuration
            ) { request throws(ConsoleFault) in
                let input = try request.input(ConfigurationInput.self)
                guard let revision = input.revision else { throw .wrong("revision", "fault.missing") }
                let (id, name) = (request.instanceID, request.part("bizType"))
                let old = try await control.current(revision, \.revision) { () throws(ConsoleFault) in
                    try control.configuration(id, name)
                }
                let message = try input.configuration(of: request.instanceID, old: old).bus
                let made = try await control.change(by: try request.signedIn()) { $0.modifyConfiguration = message }
                try control.requireCopy(of: made)
                return try item(request, request.part("bizType"))
            },
            switching("online", true, "Accepts pushes again, and sends the withheld data."),
            switching("offline", false, "Refuses pushes, and withholds the stored data."),
            Route(
                method: .delete, pattern: RoutePattern("/api/v1" + one), access: .instance(.operations),
                needsPassword: true, summary: "Deletes a configuration that is offline."
            ) { request throws(ConsoleFault) in
                let configuration = try control.configuration(request.instanceID, request.part("bizType"))
                guard !configuration.isOnline else { throw .refused(request.words.text("fault.deleteOnline")) }
                let name = name(request)
                try await control.change(by: try request.signedIn()) { $0.deleteConfiguration = name }
                return .done
            },
        ]
    }

    private var reading: [Route] {
        let all = "/instances/{instance}/configurations"
        let access = Access.instance(.viewer)
        let queries = [
            RouteInput("search", "Part of a Sync ID."), RouteInput("online", "yes or no; absent: both."),
            RouteInput("page", .whole, "The number of the page, from 1."),
        ]
        return [
            Route(method: .get, pattern: RoutePattern(all), access: access, summary: "The list.") {
                request throws(ConsoleFault) in
                .page(page(request, "configurations", "tab.configurations", content: try list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + all), access: access,
                summary: "Configurations of an instance in the order of their Sync IDs, 50 to a page.",
                queries: queries, example: AnswerExamples.configurations
            ) { request throws(ConsoleFault) in .json(try list(request)) },
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/new-configuration"),
                access: .instance(.operations), summary: "The form for a new one."
            ) { request throws(ConsoleFault) in
                .page(page(request, "configuration", "title.newConfiguration", content: try newForm(request)))
            },
            Route(
                method: .get, pattern: RoutePattern(all + "/{bizType}"), access: access, summary: "One configuration."
            ) { request throws(ConsoleFault) in
                .page(
                    page(
                        request, "configuration", "title.configuration", request.part("bizType"),
                        content: try form(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + all + "/{bizType}"), access: access,
                summary: "One configuration.", example: AnswerExamples.configuration
            ) { request throws(ConsoleFault) in try item(request, request.part("bizType")) },
        ]
    }

    private func switching(_ word: String, _ isOnline: Bool, _ summary: String) -> Route {
        Route(
            method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/configurations/{bizType}/\(word)"),
            access: .instance(.operations), summary: summary, example: AnswerExamples.configuration
        ) { request throws(ConsoleFault) in
            let name = name(request)
            let made = try await control.change(by: try request.signedIn()) {
                $0.switchConfiguration = .with {
                    $0.name = name
                    $0.online = isOnline
                }
            }
            try control.requireCopy(of: made)
            return try item(request, request.part("bizType"))
        }
    }

    private func name(_ request: ConsoleRequest) -> Mss_Bus_V1_ConfigurationName {
        .with {
            $0.instanceID = request.instanceID.text
            $0.bizType = request.part("bizType")
        }
    }

    private func item(_ request: ConsoleRequest, _ bizType: String, status: Int = 200) throws(ConsoleFault)
        -> ConsoleAnswer
    {
        .json(ConfigurationItem(try control.configuration(request.instanceID, bizType), request.words), status: status)
    }

    private func page(
        _ request: ConsoleRequest, _ template: String, _ title: String, _ detail: String = "", content: any Sendable
    ) -> PageContent {
        PageContent(
            template: template, title: title, detail: detail, tab: .configurations, instanceID: request.instanceID,
            content: content)
    }

    private func list(_ request: ConsoleRequest) throws(ConsoleFault) -> List {
        _ = try control.instance(request.instanceID)
        let search = (request.query["search"] ?? "").trimmed
        let online = request.query["online"]
        let found = control.directory.configurations(of: request.instanceID).filter { one in
            (search.isEmpty || one.bizType.text.range(of: search, options: .caseInsensitive) != nil)
                && (online != "yes" || one.isOnline) && (online != "no" || !one.isOnline)
        }
        let pages = max(1, (found.count + Self.pageRows - 1) / Self.pageRows)
        let number = Int(request.number("page", in: 1...Int64(pages), default: 1))
        let rows = found.dropFirst((number - 1) * Self.pageRows).prefix(Self.pageRows)
        func address(_ page: Int) -> String? {
            guard page != number, (1...pages).contains(page) else { return nil }
            return Paths.page(
                request.instanceID, "configurations",
                query: [("search", search), ("online", online), ("page", "\(page)")])
        }
        return List(
            configurations: rows.map { ConfigurationItem($0, request.words) }, total: found.count, page: number,
            pages: pages, search: search, isOnline: online == "yes",
            isOffline: online == "no", isEmpty: found.isEmpty, before: address(number - 1), after: address(number + 1),
            newPage: Paths.page(request.instanceID, "new-configuration"),
            rollouts: Paths.page(request.instanceID, "rollouts"), mayChange: mayChange(request))
    }

    private func form(_ request: ConsoleRequest) throws(ConsoleFault) -> Form {
        let instance = try control.instance(request.instanceID)
        let configuration = try control.configuration(request.instanceID, request.part("bizType"))
        let item = ConfigurationItem(configuration, request.words)
        let mayChange = mayChange(request)
        return Form(
            configuration: item, isNew: false, isEdited: mayChange && request.query["edit"] != nil,
            mayChange: mayChange, list: Paths.page(instance.id, "configurations"), api: item.api, method: "PUT",
            instanceVerdictSeconds: instance.verdictLifetime.components.seconds)
    }

    private func newForm(_ request: ConsoleRequest) throws(ConsoleFault) -> Form {
        let instance = try control.instance(request.instanceID)
        let preselected = SyncConfiguration.standard(instanceID: instance.id, bizType: BizType(""))
        return Form(
            configuration: ConfigurationItem(preselected, request.words), isNew: true, isEdited: true, mayChange: true,
            list: Paths.page(instance.id, "configurations"),
            api: "/api/v1" + Paths.page(instance.id, "configurations"), method: "POST",
            instanceVerdictSeconds: instance.verdictLifetime.components.seconds)
    }

    private func mayChange(_ request: ConsoleRequest) -> Bool {
        Access.instance(.operations).allows(request.principal?.account, instance: request.instanceID)
    }
}
