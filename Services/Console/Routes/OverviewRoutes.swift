import AMQP
import BusMessages
import Foundation
import ServiceKit
import SyncModel
import SyncStore

/// The overview of an instance, live (C1).
struct OverviewRoutes: Sendable {
    private static let interval = Duration.seconds(3)

    let database: Database
    let control: ControlService
    let board: ProcessReportBoard
    let sessions: Sessions
    let health: HealthState
    let streams: StreamCount
    private let cache = ResponseCache<FigureQuery, Figures>(lifetime: .seconds(1))

    init(
        database: Database, control: ControlService, board: ProcessReportBoard, sessions: Sessions, health: HealthState,
        streams: StreamCount
    ) {
        self.database = database
        self.control = control
        self.board = board
        self.sessions = sessions
        self.health = health
        self.streams = streams
    }

    /// The key of cached figures; all viewers of an overview share them.
    private struct FigureQuery: Hashable, Sendable {
        let instanceID: InstanceID
        let range: OverviewRange
    }

    /// The figures of a time range, read from the database.
    private struct Figures: Sendable {
        let from: WallTime
        let to: WallTime
        let minutes: [FigureStore.Step]
        let connected: [FigureStore.Connected]
        let backlog: Int64
        let deadLetters: Int64
        let foldedUntil: WallTime?
    }

    /// A range for the filter.
    struct Choice: Sendable {
        let name: String
        let address: String
        let isChosen: Bool
    }

    /// The page, with its first live figures.
    struct Page: Sendable {
        let ranges: [Choice]
        let live: OverviewFigures
        let events: String
        let data: String
    }

    var routes: [Route] {
        let path = "/instances/{instance}/overview"
        let viewer = Access.instance(.viewer)
        let queries = [RouteInput("range", "hour (default), day, week or month.")]
        return [
            Route(method: .get, pattern: RoutePattern(path), access: viewer, summary: "The overview.") {
                request throws(ConsoleFault) in
                let page = Page(
                    ranges: ranges(request), live: try await figures(request),
                    events: "/api/v1\(Paths.page(request.instanceID, "overview", "events"))"
                        + Paths.query([("range", range(request).rawValue)]),
                    data: Paths.page(request.instanceID, "data"))
                return .page(
                    PageContent(
                        template: "overview", title: "tab.overview", tab: .overview, instanceID: request.instanceID,
                        content: page))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: viewer,
                summary: "Connected devices, pushes, arrivals and times of an instance; processes and queues.",
                queries: queries, example: AnswerExamples.overview
            ) { request throws(ConsoleFault) in .json(try await figures(request)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/events"), access: viewer,
                summary: "The overview's live part as server-sent events, for the page.", queries: queries
            ) { request throws(ConsoleFault) in
                _ = try control.instance(request.instanceID)
                guard let reservation = streams.reserve(for: try request.signedIn().account.name) else { throw .busy }
                return ConsoleAnswer(
                    body: .stream(type: "text/event-stream", AsyncStream { await event(request, reservation) }))
            },
        ]
    }

    private func range(_ request: ConsoleRequest) -> OverviewRange {
        request.query["range"].flatMap(OverviewRange.init) ?? .hour
    }

    private func ranges(_ request: ConsoleRequest) -> [Choice] {
        OverviewRange.allCases.map { range in
            Choice(
                name: request.words.text("range.\(range.rawValue)"),
                address: Paths.page(request.instanceID, "overview", query: [("range", range.rawValue)]),
                isChosen: range == self.range(request))
        }
    }

    /// The next event; nil ends the stream, and the browser connects again.
    private func event(_ request: ConsoleRequest, _ reservation: StreamCount.Reservation) async -> String? {
        // The stream keeps its reservation until it ends. The page already has the first figures, so the wait comes
        // first.
        withExtendedLifetime(reservation) {}
        try? await Task.sleep(for: Self.interval)
        guard !Task.isCancelled, !health.isDraining else { return nil }
        // The stream ends when the account has signed out or lost its role.
        guard let principal = request.principal,
            let now = try? await sessions.principal(
                (principal.token, principal.proof), from: principal.source, isSignOfLife: false),
            Access.instance(.viewer).allows(now.account, instance: request.instanceID)
        else { return nil }
        guard let figures = try? await figures(request) else { return ": \n\n" }
        let html = PageRenderer.part("overview-live", figures, request.words)
        let data = (try? JSONEncoder().encode(html)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
        return "event: figures\ndata: \(data)\n\n"
    }

    // MARK: Figures

    private func figures(_ request: ConsoleRequest) async throws(ConsoleFault) -> OverviewFigures {
        let instance = try control.instance(request.instanceID)
        let range = range(request)
        let query = FigureQuery(instanceID: instance.id, range: range)
        let read = try await cache.answer(of: query) { [database] () throws(ConsoleFault) in
            try await Self.read(query, from: database)
        }
        let now = WallTime.now
        let (from, to, minutes, dead) = (read.from, read.to, read.minutes, read.deadLetters)
        var times = ArrivalTimes()
        for minute in minutes { times += minute.arrivals }
        let steps = Self.steps(
            minutes, read.connected, range: (from, to, range.step), foldedUntil: read.foldedUntil,
            backlog: read.backlog)
        let lag = read.foldedUntil.map { max(0, Double(now.milliseconds - $0.milliseconds) / 1_000) }
        let reports = board.reports
        let words = request.words
        return OverviewFigures(
            connected: Self.connected(at: instance.id, reports) ?? read.connected.last?.devices ?? 0,
            pushes: minutes.reduce(0) { $0 + $1.pushes },
            arrivals: times.total, p50: times.milliseconds(at: 0.5), p99: times.milliseconds(at: 0.99),
            backlog: read.backlog, deadLetters: dead,
            verdictFailures: Self.verdictFailures(reports), lagSeconds: lag, steps: steps,
            processes: reports.map(Self.process), queues: await queues(),
            p50Text: OverviewFigures.text(milliseconds: times.milliseconds(at: 0.5)),
            p99Text: OverviewFigures.text(milliseconds: times.milliseconds(at: 0.99)),
            lagText: OverviewFigures.text(milliseconds: lag.map { $0 * 1_000 }), isLate: (lag ?? 0) > 10,
            hasDeadLetters: dead > 0,
            charts: Self.charts(steps, from: from.milliseconds, to: to.milliseconds, range, words),
            updatedAt: now.milliseconds, updatedText: now.text)
    }

    private static func read(_ query: FigureQuery, from database: Database) async throws(ConsoleFault) -> Figures {
        let (id, range, now) = (query.instanceID, query.range, WallTime.now)
        let (from, to) = range.steps(at: now)
        let monthAgo = WallTime(milliseconds: now.milliseconds - 29 * 86_400_000)
        let days = try await database.run(FigureStore.days(of: id, from: monthAgo, to: now))
        return Figures(
            from: from, to: to,
            minutes: try await database.run(FigureStore.minutes(of: id, from: from, to: to, step: range.step)),
            connected: try await database.run(FigureStore.connected(of: id, from: from, to: to, step: range.step)),
            backlog: days.reduce(0) { $0 + $1.pushes - $1.arrivals },
            deadLetters: try await database.run(FigureStore.deadLetters(of: id)),
            foldedUntil: try await database.run(FigureStore.foldedUntil))
    }

    /// The connected devices by the gateways' latest reports; nil when no gateway has reported.
    static func connected(at instanceID: InstanceID, _ reports: [ProcessReport]) -> Int64? {
        let gateways = reports.filter { $0.service == "mss-gateway" }
        guard !gateways.isEmpty else { return nil }
        return gateways.reduce(0) { $0 + Int64($1.devices[instanceID] ?? 0) }
    }

    /// One item for each step. A step that the statistics have not counted yet has no figures.
    static func steps(
        _ minutes: [FigureStore.Step], _ connected: [FigureStore.Connected],
        range: (from: WallTime, to: WallTime, step: Duration), foldedUntil: WallTime?, backlog: Int64
    ) -> [OverviewFigures.Step] {
        let figures = Dictionary(minutes.map { ($0.begin, $0) }) { first, _ in first }
        let devices = Dictionary(connected.map { ($0.begin, $0.devices) }) { first, _ in first }
        let begins = stride(
            from: range.from.milliseconds, to: range.to.milliseconds, by: Int(range.step.wholeMilliseconds)
        ).map { WallTime(milliseconds: $0) }
        let backlogs = OverviewFigures.backlogs(
            now: backlog, changes: begins.map { figures[$0].map { $0.pushes - $0.arrivals.total } ?? 0 })
        return zip(begins, backlogs).map { begin, backlog in
            let one = figures[begin]
            let isKnown = foldedUntil.map { begin < $0 } ?? false
            return OverviewFigures.Step(
                at: begin.milliseconds, pushes: isKnown ? one?.pushes ?? 0 : nil,
                arrivals: isKnown ? one?.arrivals.total ?? 0 : nil, backlog: isKnown ? backlog : nil,
                connected: devices[begin], p50: one?.arrivals.milliseconds(at: 0.5),
                p99: one?.arrivals.milliseconds(at: 0.99))
        }
    }

    private static func charts(
        _ steps: [OverviewFigures.Step], from: Int64, to: Int64, _ range: OverviewRange, _ words: PageTexts
    ) -> [OverviewFigures.Chart] {
        let perMinute = 60_000 / Double(range.step.wholeMilliseconds)
        func chart(
            _ id: String, _ lines: [(name: String, value: (OverviewFigures.Step) -> Double?)]
        ) -> OverviewFigures.Chart {
            let drawn = LineChart(
                id: "chart-\(id)", title: words.text("chart.\(id)"),
                lines: lines.map { line in
                    LineChart.Line(
                        name: words.text("chart.\(line.name)"), points: steps.map { ($0.at, line.value($0)) })
                }, from: from, to: to)
            return OverviewFigures.Chart(drawn, words)
        }
        return [
            chart(
                "pushes",
                [
                    ("accepted", { $0.pushes.map { Double($0) * perMinute } }),
                    ("arrived", { $0.arrivals.map { Double($0) * perMinute } }),
                ]),
            chart("times", [("median", { $0.p50 }), ("p99", { $0.p99 })]),
            chart("backlog", [("waiting", { $0.backlog.map(Double.init) })]),
            chart("connected", [("devices", { $0.connected.map(Double.init) })]),
        ]
    }

    private static func process(_ report: ProcessReport) -> OverviewFigures.Process {
        let missing = report.conditions.filter { !$0.value }.map(\.key).sorted()
        return OverviewFigures.Process(
            service: report.service, version: report.version, ready: report.isReady,
            startedAt: report.startedAt.milliseconds, missing: missing, startedText: report.startedAt.text,
            missingText: missing.joined(separator: ", "))
    }

    private static func verdictFailures(_ reports: [ProcessReport]) -> Int64 {
        reports.reduce(0) { $0 + Int64($1.figures["mss_validator_failures_total"] ?? 0) }
    }

    private func queues() async -> [OverviewFigures.Queue] {
        let depths: [String: AMQPQueueDepth] = (try? await control.bus.queueDepths()) ?? [:]
        return depths.sorted { $0.key < $1.key }.map {
            OverviewFigures.Queue(
                name: $0.key, waiting: $0.value.messages, consumers: $0.value.consumers,
                // No process consumes rejected facts, so every message there needs an operator.
                isBad: $0.key == Topology.deadFactsQueue ? $0.value.messages > 0 : $0.value.consumers == 0)
        }
    }
}

/// The time range of an overview, and its step.
private enum OverviewRange: String, CaseIterable, Sendable {
    case hour, day, week, month

    /// The length of the range.
    var length: Duration {
        switch self {
        case .hour: .seconds(3_600)
        case .day: .seconds(86_400)
        case .week: .seconds(7 * 86_400)
        case .month: .seconds(30 * 86_400)
        }
    }

    /// The time of one point in a chart.
    var step: Duration {
        switch self {
        case .hour: .seconds(60)
        case .day: .seconds(600)
        case .week: .seconds(3_600)
        case .month: .seconds(4 * 3_600)
        }
    }

    /// The range that ends with the step that contains a time.
    func steps(at now: WallTime) -> (from: WallTime, to: WallTime) {
        let step = step.wholeMilliseconds
        let end = (now.milliseconds / step + 1) * step
        return (WallTime(milliseconds: end - length.wholeMilliseconds), WallTime(milliseconds: end))
    }
}
