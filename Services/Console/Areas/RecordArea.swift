import BusMessages
import Credentials
import Foundation
import SyncModel
import SyncStore

/// What people did: the list with its filters, one record, the export (spec C9, reliability SEC15).
struct RecordArea: Sendable {
    /// Rows of one page of the list.
    private static let pageRows = 50

    let database: Database
    let desk: ControlDesk
    let streams: StreamCount

    /// An action that can be asked for.
    struct Choice: Sendable {
        let word: String
        let name: String
        let isChosen: Bool
    }

    /// A page of the list, the newest first.
    struct List: Encodable, Sendable {
        let records: [RecordItem]
        /// Ask on with `before` = this; absent: there are no more.
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
        /// The pushed content; nil when its time has ended, or it was recalled.
        let content: String?
        let trace: String?
    }

    var routes: [Route] {
        let queries = [
            RouteInput("actor", "Any part of the operator's name."), RouteInput("action", "The action's word."),
            RouteInput("from", .whole, "Milliseconds since 1970."), RouteInput("to", .whole, "Likewise, excluded."),
            RouteInput("before", .whole, "The `next` of the page before."),
        ]
        return places.flatMap { place in
            let (path, access) = (place.path, place.access)
            return [
                Route(method: .get, pattern: RoutePattern(path), access: access, summary: "Operation records.") {
                    exchange throws(ConsoleFault) in
                    .page(
                        PageContent(
                            template: "records", title: "tab.records", tab: place.isOfService ? nil : .records,
                            instanceID: place.isOfService ? nil : exchange.instanceID,
                            content: try await list(exchange, place)))
                },
                Route(
                    method: .get, pattern: RoutePattern("/api/v1" + path), access: access,
                    summary: "Operation records, the newest first; without a time the last 7 days, at most 1,000.",
                    queries: queries, example: AnswerExamples.records
                ) { exchange throws(ConsoleFault) in .json(try await list(exchange, place)) },
                Route(
                    method: .get, pattern: RoutePattern("/api/v1\(path)/export"), access: access,
                    summary: "All of them that the filters let through, the oldest first, a JSON object on each line.",
                    queries: queries.dropLast()
                ) { exchange throws(ConsoleFault) in try export(exchange, try filter(exchange, place)) },
                Route(
                    method: .get, pattern: RoutePattern(path + "/{number}"), access: access, summary: "One record."
                ) { exchange throws(ConsoleFault) in
                    .page(
                        PageContent(
                            template: "record", title: "title.record", detail: exchange.part("number"),
                            tab: place.isOfService ? nil : .records,
                            instanceID: place.isOfService ? nil : exchange.instanceID,
                            content: try await page(exchange, place)))
                },
                Route(
                    method: .get, pattern: RoutePattern("/api/v1\(path)/{number}"), access: access,
                    summary: "One record.", example: AnswerExamples.record
                ) { exchange throws(ConsoleFault) in .json(try await item(exchange, place)) },
            ]
        }
    }

    /// Whose records a path shows: those of an instance, or all there are.
    private struct Place: Sendable {
        let path: String
        let access: Access
        let isOfService: Bool

        func address(_ exchange: Exchange, _ part: String? = nil, query: [(String, String?)] = []) -> String {
            let parts = [part].compactMap { $0 }
            guard isOfService else {
                let base = Paths.page(exchange.instanceID, "records")
                return ([base] + parts).joined(separator: "/") + Paths.query(query)
            }
            return (["/records"] + parts).joined(separator: "/") + Paths.query(query)
        }
    }

    private var places: [Place] {
        [
            Place(path: "/instances/{instance}/records", access: .instance(.viewer), isOfService: false),
            Place(path: "/records", access: .service(.administrator), isOfService: true),
        ]
    }

    private func filter(_ exchange: Exchange, _ place: Place) throws(ConsoleFault) -> RecordFilter {
        var filter = RecordFilter(instanceID: place.isOfService ? nil : exchange.instanceID)
        if let actor = exchange.query["actor"].map(\.trimmed), !actor.isEmpty {
            // A whole name, as links have it, is that one alone.
            if ["console:", "mssctl:"].contains(where: actor.hasPrefix) {
                filter.actor = actor
            } else {
                filter.actorPart = actor
            }
        }
        if let word = exchange.query["action"] {
            guard let action = OperationAction(word: word) else {
                throw .wrong("action", "fault.choice", OperationAction.allCases.map(\.word).joined(separator: ", "))
            }
            filter.actionCode = action.rawValue
        }
        filter.from = try exchange.time("from")
        filter.to = try exchange.time("to")
        return filter
    }

    private func list(_ exchange: Exchange, _ place: Place) async throws(ConsoleFault) -> List {
        let filter = try filter(exchange, place)
        let before = exchange.query["before"] == nil ? nil : exchange.number("before", in: 1...(.max), default: .max)
        let page = try await database.run(RecordStore.page(filter, before: before, limit: Self.pageRows))
        let chosen = exchange.query["action"]
        let next = page.hasMore ? page.records.last?.number : nil
        let query: [(String, String?)] = [
            ("actor", filter.actor ?? filter.actorPart), ("action", chosen), ("from", exchange.query["from"]),
            ("to", exchange.query["to"]),
        ]
        let words = exchange.words
        return List(
            records: page.records.map {
                RecordItem($0, page: place.address(exchange, "\($0.number)"), words)
            }, next: next, isEmpty: page.records.isEmpty, isRecent: filter.hasNoTime,
            actor: filter.actor ?? filter.actorPart ?? "",
            from: filter.from?.milliseconds, to: filter.to?.milliseconds,
            actions: OperationAction.allCases.map {
                Choice(word: $0.word, name: words.text("action.\($0.word)"), isChosen: $0.word == chosen)
            }, older: next.map { place.address(exchange, query: query + [("before", "\($0)")]) },
            export: "/api/v1" + place.address(exchange, "export", query: query), here: place.address(exchange),
            isOfService: place.isOfService)
    }

    private func record(_ exchange: Exchange, _ place: Place) async throws(ConsoleFault) -> OperationRecord {
        let number = exchange.part("number")
        guard let value = Int64(number), let record = try await database.run(RecordStore.record(value)),
            place.isOfService || record.instanceID == exchange.instanceID
        else { throw .noSuch("record", number) }
        return record
    }

    private func item(_ exchange: Exchange, _ place: Place) async throws(ConsoleFault) -> RecordItem {
        let record = try await record(exchange, place)
        return RecordItem(record, page: place.address(exchange, "\(record.number)"), exchange.words)
    }

    private func page(_ exchange: Exchange, _ place: Place) async throws(ConsoleFault) -> Page {
        let record = try await record(exchange, place)
        let push = RecordedPush(record)
        let kept = try await database.run(RecordStore.content(of: record.number))
        let content = kept.map { kept in
            kept.isBinary ? Data(kept.payload).base64EncodedString() : String(decoding: kept.payload, as: UTF8.self)
        }
        return Page(
            record: RecordItem(record, page: "", exchange.words),
            groups: RecordDetail(record, exchange.words).groups,
            list: place.address(exchange), content: content,
            trace: push.map { push in
                Paths.page(
                    record.instanceID, "trace",
                    query: [
                        ("bizType", push.name.bizType), ("linkToken", push.name.linkToken),
                        ("thirdMsgId", push.name.thirdMessageID),
                    ])
            })
    }

    private func export(_ exchange: Exchange, _ filter: RecordFilter) throws(ConsoleFault) -> ConsoleAnswer {
        guard let place = streams.take(for: try exchange.signedIn().account.name) else { throw .busy }
        let export = RecordExport(filter, database: database, words: exchange.words, place: place)
        return ConsoleAnswer(
            body: .stream(type: "application/x-ndjson; charset=utf-8", export.pages),
            headers: [("Content-Disposition", "attachment; filename=\"operation-records.ndjson\"")])
    }
}
