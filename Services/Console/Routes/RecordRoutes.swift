import BusMessages
import Credentials
import Foundation
import SwiftProtobuf
import SyncModel
import SyncStore

/// Audit records: the list with its filters, one record, the export (C9, SEC15).
struct RecordRoutes: Sendable {
    /// Rows of one page of the list.
    private static let pageRows = 50

    let database: Database
    let control: ControlService
    let streams: StreamCount

    /// An action for the filter.
    struct Choice: Sendable {
        let word: String
        let name: String
        let isChosen: Bool
    }

    /// A page of the list, the newest first.
    struct List: Encodable, Sendable {
        let records: [RecordItem]
        /// The value of `before` for the next page; absent on the last page.
        let next: Int64?

        // For pages alone.
        let isEmpty: Bool
        let isRecent: Bool
        let actor: String
        let from: Int64?
        let to: Int64?
        let actions: [Choice]
        let older: String?
        let export: String
        let here: String
        let isOfService: Bool

        private enum CodingKeys: String, CodingKey { case records, next }
    }

    /// One record's page.
    struct Page: Sendable {
        let record: RecordItem
        let groups: [RecordDetail.Group]
        let list: String
        /// The pushed content; nil when the push has expired or was recalled.
        let content: String?
        let trace: String?
    }

    var routes: [Route] {
        let queries = [
            RouteInput("actor", "Any part of the operator's name."), RouteInput("action", "The code of an action."),
            RouteInput("from", .whole, "Milliseconds since 1970."),
            RouteInput("to", .whole, "The end, in the same form; excluded."),
            RouteInput("before", .whole, "The `next` of the previous page."),
        ]
        return scopes.flatMap { scope in
            let (path, access) = (scope.path, scope.access)
            return [
                Route(method: .get, pattern: RoutePattern(path), access: access, summary: "Operation records.") {
                    request throws(ConsoleFault) in
                    .page(
                        PageContent(
                            template: "records", title: "tab.records", tab: scope.isOfService ? nil : .records,
                            instanceID: scope.isOfService ? nil : request.instanceID,
                            content: try await list(request, scope)))
                },
                Route(
                    method: .get, pattern: RoutePattern("/api/v1" + path), access: access,
                    summary: "Operation records, the newest first; without a time the last 7 days, at most 1,000.",
                    queries: queries, example: AnswerExamples.records
                ) { request throws(ConsoleFault) in .json(try await list(request, scope)) },
                Route(
                    method: .get, pattern: RoutePattern("/api/v1\(path)/export"), access: access,
                    summary: "All records that match the filters, the oldest first, one JSON object on each line.",
                    queries: queries.dropLast()
                ) { request throws(ConsoleFault) in try export(request, try filter(request, scope)) },
                Route(
                    method: .get, pattern: RoutePattern(path + "/{number}"), access: access, summary: "One record."
                ) { request throws(ConsoleFault) in
                    .page(
                        PageContent(
                            template: "record", title: "title.record", detail: request.part("number"),
                            tab: scope.isOfService ? nil : .records,
                            instanceID: scope.isOfService ? nil : request.instanceID,
                            content: try await page(request, scope)))
                },
                Route(
                    method: .get, pattern: RoutePattern("/api/v1\(path)/{number}"), access: access,
                    summary: "One record.", example: AnswerExamples.record
                ) { request throws(ConsoleFault) in .json(try await item(request, scope)) },
            ]
        }
    }

    /// The records under a path: those of an instance, or all.
    private struct Scope: Sendable {
        let path: String
        let access: Access
        let isOfService: Bool

        func address(_ request: ConsoleRequest, _ part: String? = nil, query: [(String, String?)] = []) -> String {
            let parts = [part].compactMap { $0 }
            guard isOfService else {
                let base = Paths.page(request.instanceID, "records")
                return ([base] + parts).joined(separator: "/") + Paths.query(query)
            }
            return (["/records"] + parts).joined(separator: "/") + Paths.query(query)
        }
    }

    private var scopes: [Scope] {
        [
            Scope(path: "/instances/{instance}/records", access: .instance(.viewer), isOfService: false),
            Scope(path: "/records", access: .service(.administrator), isOfService: true),
        ]
    }

    private func filter(_ request: ConsoleRequest, _ scope: Scope) throws(ConsoleFault) -> RecordFilter {
        var filter = RecordFilter(instanceID: scope.isOfService ? nil : request.instanceID)
        if let actor = request.query["actor"].map(\.trimmed), !actor.isEmpty {
            // A complete name, as links contain it, matches exactly.
            if ["console:", "mssctl:"].contains(where: actor.hasPrefix) {
                filter.actor = actor
            } else {
                filter.actorPart = actor
            }
        }
        if let word = request.query["action"] {
            guard let action = OperationAction(word: word) else {
                throw .wrong("action", "fault.choice", OperationAction.allCases.map(\.word).joined(separator: ", "))
            }
            filter.actionCode = action.rawValue
        }
        filter.from = try request.time("from")
        filter.to = try request.time("to")
        return filter
    }

    private func list(_ request: ConsoleRequest, _ scope: Scope) async throws(ConsoleFault) -> List {
        let filter = try filter(request, scope)
        let before = request.query["before"] == nil ? nil : request.number("before", in: 1...(.max), default: .max)
        let page = try await database.run(RecordStore.page(filter, before: before, limit: Self.pageRows))
        let chosen = request.query["action"]
        let next = page.hasMore ? page.records.last?.number : nil
        let query: [(String, String?)] = [
            ("actor", filter.actor ?? filter.actorPart), ("action", chosen), ("from", request.query["from"]),
            ("to", request.query["to"]),
        ]
        let words = request.words
        return List(
            records: page.records.map {
                RecordItem($0, page: scope.address(request, "\($0.number)"), words)
            }, next: next, isEmpty: page.records.isEmpty, isRecent: filter.hasNoTime,
            actor: filter.actor ?? filter.actorPart ?? "",
            from: filter.from?.milliseconds, to: filter.to?.milliseconds,
            actions: OperationAction.allCases.map {
                Choice(word: $0.word, name: words.text("action.\($0.word)"), isChosen: $0.word == chosen)
            }, older: next.map { scope.address(request, query: query + [("before", "\($0)")]) },
            export: "/api/v1" + scope.address(request, "export", query: query), here: scope.address(request),
            isOfService: scope.isOfService)
    }

    private func record(_ request: ConsoleRequest, _ scope: Scope) async throws(ConsoleFault) -> OperationRecord {
        let number = request.part("number")
        guard let value = Int64(number), let record = try await database.run(RecordStore.record(value)),
            scope.isOfService || record.instanceID == request.instanceID
        else { throw .noSuch("record", number) }
        return record
    }

    private func item(_ request: ConsoleRequest, _ scope: Scope) async throws(ConsoleFault) -> RecordItem {
        let record = try await record(request, scope)
        return RecordItem(record, page: scope.address(request, "\(record.number)"), request.words)
    }

    private func page(_ request: ConsoleRequest, _ scope: Scope) async throws(ConsoleFault) -> Page {
        let record = try await record(request, scope)
        let push = RecordedPush(record)
        let kept = try await database.run(RecordStore.content(of: record.number))
        let content = kept.map { kept in
            kept.isBinary ? Data(kept.payload).base64EncodedString() : String(decoding: kept.payload, as: UTF8.self)
        }
        return Page(
            record: RecordItem(record, page: "", request.words),
            groups: RecordDetail(record, request.words).groups,
            list: scope.address(request), content: content,
            trace: push.map { push in
                Paths.page(
                    record.instanceID, "trace",
                    query: [
                        ("bizType", push.name.bizType), ("linkToken", push.name.linkToken),
                        ("thirdMsgId", push.name.thirdMessageID),
                    ])
            })
    }

    private func export(_ request: ConsoleRequest, _ filter: RecordFilter) throws(ConsoleFault) -> ConsoleAnswer {
        guard let reservation = streams.reserve(for: try request.signedIn().account.name) else { throw .busy }
        let export = RecordExport(filter, database: database, words: request.words, reservation: reservation)
        return ConsoleAnswer(
            body: .stream(type: "application/x-ndjson; charset=utf-8", export.pages),
            headers: [("Content-Disposition", "attachment; filename=\"operation-records.ndjson\"")])
    }
}

/// The push of a record "create sync", or the first stage of a record "start roll-out".
struct RecordedPush {
    let name: Mss_Bus_V1_OplogName

    /// The value is nil when the record is not of a push.
    init?(_ record: OperationRecord) {
        struct Members: Decodable {
            let target: String?
            let thirdMsgId: String
        }
        guard record.action == .createSync || record.action == .startRollout, let after = record.after,
            let members = try? JSONDecoder().decode(Members.self, from: Data(after.utf8))
        else { return nil }
        name = .with {
            $0.instanceID = record.instanceID.text
            $0.bizType = record.subject
            $0.linkToken = members.target ?? ""
            let id = ThirdMessageID(members.thirdMsgId)
            $0.thirdMessageID = (record.action == .startRollout ? RolloutPlan(id: id).stageID(1) : id).text
        }
    }
}
