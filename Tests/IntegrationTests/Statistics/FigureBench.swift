import ConnectionThread
import Foundation
import Logging
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

/// The time of each console query, in a database that `deploy/bench/figures.sh` has filled.
@Suite(
    "Times of queries about figures",
    .enabled(
        if: ProcessInfo.processInfo.environment["MSS_BENCH_POSTGRES_PORT"] != nil, "deploy/bench/figures.sh runs it"))
struct FigureBench {
    static let port = ProcessInfo.processInfo.environment["MSS_BENCH_POSTGRES_PORT"].flatMap { Int($0) }

    /// The console's connection, on a separate thread.
    private actor Console {
        private let thread = ConnectionThread(name: "console")
        private let connection: PostgresConnection

        nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

        init(port: Int) {
            connection = SyncDatabase.connection(
                PostgresConfiguration(host: "127.0.0.1", port: port, database: "mss", user: "console"),
                logger: Logger(label: "bench"))
        }

        /// Milliseconds of each query; the first query, which prepares the statement, is left out.
        func times<Output>(_ queries: [Query<Output>]) throws -> [Double] {
            try queries.map { query in
                let begin = ContinuousClock.now
                _ = try connection.run(query, within: .seconds(60))
                let taken = begin.duration(to: .now)
                return Double(taken.components.seconds) * 1e3 + Double(taken.components.attoseconds) / 1e15
            }.dropFirst().map(\.self)
        }

        func first<Output>(_ query: Query<[Output]>) throws -> Output? {
            try connection.run(query, within: .seconds(60)).last
        }

        func close() {
            connection.close()
            thread.stop()
        }
    }

    private static func report<Output>(_ what: String, _ console: Console, _ queries: [Query<Output>]) async throws {
        let times = try await console.times(queries).sorted()
        let (median, late) = (times[times.count / 2], times[times.count * 95 / 100])
        print("BENCH \(what): median \(String(format: "%.1f", median)) ms, p95 \(String(format: "%.1f", late)) ms")
    }

    @Test("each query, many times") func questions() async throws {
        let console = Console(port: try #require(Self.port))
        let app = InstanceID("bench")
        func user(_ name: String) -> TargetAddress { TargetAddress(instanceID: app, kind: .user, target: name) }
        let some = (0...200).map { _ in user("user-\(Int.random(in: 1...10_000))") }
        for (name, targets) in [
            ("any user", some), ("with 1,000 Sync IDs", .init(repeating: user("many"), count: 50)),
            ("with a million pushes", .init(repeating: user("big"), count: 50)),
        ] {
            try await Self.report("figures, \(name)", console, targets.map { FigureStore.figures(of: $0) })
            try await Self.report("first page, \(name)", console, targets.map { FigureStore.pushes(of: $0, limit: 20) })
        }
        var deep = try await console.first(FigureStore.pushes(of: user("big"), limit: 200))?.cursor
        for _ in 0..<50 {
            deep = try await console.first(FigureStore.pushes(of: user("big"), before: deep, limit: 200))?.cursor
        }
        let later = (0..<50).map { _ in FigureStore.pushes(of: user("big"), before: deep, limit: 20) }
        try await Self.report("page after 10,000 pushes", console, later)
        let now = WallTime(milliseconds: Int64(Date.now.timeIntervalSince1970 / 60) * 60_000)
        let month = now + .seconds(-29 * 86_400)
        let sync = BizType("SYNC-7")
        try await Self.report("30 days", console, (0..<30).map { _ in FigureStore.days(of: app, from: month, to: now) })
        try await Self.report(
            "30 days of a Sync ID", console,
            (0..<30).map { _ in FigureStore.days(of: app, bizType: sync, from: month, to: now) })
        try await Self.report(
            "kinds of devices in 30 days", console,
            (0..<20).map { _ in FigureStore.traits(of: app, from: month, to: now) })
        try await Self.report(
            "the same of a Sync ID", console,
            (0..<30).map { _ in FigureStore.traits(of: app, bizType: sync, from: month, to: now) })
        for (name, from, step): (String, Int64, Int64) in [
            ("an hour", 3_600, 60), ("a day", 86_400, 600), ("30 days", 30 * 86_400, 14_400),
        ] {
            // The same range as in the overview: whole steps.
            let begin = now.milliseconds / (step * 1_000) * step * 1_000 - from * 1_000
            let (from, step) = (WallTime(milliseconds: begin), Duration.seconds(step))
            try await Self.report(
                "pushes and arrivals of \(name)", console,
                (0..<30).map { _ in FigureStore.minutes(of: app, from: from, to: now, step: step) })
            try await Self.report(
                "connected devices of \(name)", console,
                (0..<30).map { _ in FigureStore.connected(of: app, from: from, to: now, step: step) })
        }
        try await Self.report("dead letters", console, (0..<30).map { _ in FigureStore.deadLetters(of: app) })
        await console.close()
    }
}
