import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Reading figures", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct FigureStoreTests {
    private typealias Fact = StatisticsFact

    private static let app = InstanceID("app")
    private static let minute: Int64 = 60_000
    /// The current time, to the minute.
    private let now: Int64

    init() {
        let milliseconds = Int64(Date.now.timeIntervalSince1970 * 1_000)
        now = milliseconds - milliseconds % Self.minute
    }

    private func time(_ milliseconds: Int64) -> WallTime { WallTime(milliseconds: milliseconds) }

    private static func user(_ name: String) -> TargetAddress {
        TargetAddress(instanceID: app, kind: .user, target: name)
    }

    @Test("H7: only the devices on which the user received a global push") func pullers() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            let database = databases[0]
            try await database.fold(
                [
                    .accepted(channel: 5, oplog: 1, at: now), .accepted(channel: 5, oplog: 2, at: now),
                    .handedOut(channel: 5, oplog: 1, device: 1, at: now),
                    .handedOut(channel: 5, oplog: 1, device: 2, at: now),
                    .handedOut(channel: 5, oplog: 2, device: 3, at: now),
                ])
            func devices(_ user: String, _ bizType: String, _ oplogID: Int64, limit: Int = 9) async throws -> [String] {
                try await database.runAsConsole(
                    FigureStore.devices(
                        of: Self.user(user), thatPulled: OplogID(oplogID), of: BizType(bizType), limit: limit)
                ).map(\.text)
            }
            #expect(try await devices("u1", "G", 1) == ["d1"])
            #expect(try await devices("u2", "G", 1) == ["d2"])
            #expect(try await devices("u3", "G", 2) == ["d3"])
            #expect(try await devices("u1", "G", 2).isEmpty)
            #expect(try await devices("u1", "G", 1, limit: 0).isEmpty)
            #expect(try await devices("u1", "A", 1).isEmpty)
        }
    }

    @Test("C7: a user's list has own and global pushes, newest first, page by page without a gap or a repeat")
    func list() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            let database = databases[0]
            var facts: [Fact] = []
            for number in Int64(1)...40 {
                // Several have the same time, and the Sync IDs and kinds alternate.
                let (channel, at): (Int64, Int64) = ([1, 3, 5][Int(number % 3)], now - number / 4 * 1_000)
                facts.append(.accepted(channel: channel, oplog: number, at: at))
                if number % 2 == 0 || channel == 5 {
                    facts.append(.handedOut(channel: channel, oplog: number, device: 1, at: at))
                }
                if number % 4 == 0 { facts.append(.confirmed(channel: channel, oplog: number, device: 1, at: at + 9)) }
            }
            // One of another user, and one that was discarded.
            facts.append(.accepted(channel: 2, oplog: 1, at: now))
            facts.append(.accepted(channel: 1, oplog: 41, isLive: true, at: now))
            try await database.fold(facts)
            var list: [FigureStore.Push] = []
            while list.count < 100 {
                let cursor = list.last.flatMap { PushCursor(text: $0.cursor.text) }
                let page = try await database.runAsConsole(
                    FigureStore.pushes(of: Self.user("u1"), before: cursor, limit: 7))
                list += page
                if page.count < 7 { break }
            }
            #expect(Set(list.map(\.oplogID)) == Set((1...40).map { OplogID($0) }))
            #expect(list.count == 40)
            #expect(list.map(\.notedAt) == list.map(\.notedAt).sorted(by: >))
            for push in list {
                let number = push.oplogID.value
                #expect(push.bizType.text == ["A", "B", "G"][Int(number % 3)])
                #expect((push.firstHandedOutAt != nil) == (number % 2 == 0 || number % 3 == 2))
                #expect(
                    push.arrivedAt == (number % 4 == 0 ? WallTime(milliseconds: now - number / 4 * 1_000 + 9) : nil))
            }
            let figures = try await database.runAsConsole(FigureStore.figures(of: Self.user("u1")))
            #expect(figures == FigureStore.Figures(pushes: 40, arrivals: 10))
            let nobody = Self.user("nobody")
            #expect(try await database.runAsConsole(FigureStore.pushes(of: nobody, limit: 10)).isEmpty)
            #expect(try await database.runAsConsole(FigureStore.figures(of: nobody)).pushes == 0)
        }
    }

    @Test("C7: pushes older than 30 days are in neither the list nor the figures")
    func window() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            let day: Int64 = 86_400_000
            let today = now - now % day
            try await databases[0].fold(
                [
                    .accepted(channel: 1, oplog: 1, at: today - 29 * day - 1),
                    .accepted(channel: 1, oplog: 2, at: today - 29 * day),
                    .handedOut(channel: 5, oplog: 3, device: 1, at: today - 29 * day - 1),
                    .handedOut(channel: 5, oplog: 4, device: 1, at: today - 29 * day),
                ])
            let list = try await databases[0].runAsConsole(FigureStore.pushes(of: Self.user("u1"), limit: 10))
            #expect(list.map(\.oplogID) == [OplogID(4), OplogID(2)])
            #expect(try await databases[0].runAsConsole(FigureStore.figures(of: Self.user("u1"))).pushes == 2)
        }
    }

    @Test("C7: a page reads only the rows that it shows, however long the list is")
    func pageCost() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            let database = databases[0]
            let facts = (Int64(0)..<2_000).flatMap { number -> [Fact] in
                [
                    .accepted(channel: 1, oplog: number, at: now - number),
                    .handedOut(channel: 5, oplog: number, device: 1, at: now - number),
                ]
            }
            try await database.fold(facts)
            let query = FigureStore.pushes(of: Self.user("u1"), limit: 20).statement
            for setting in ["enable_seqscan = off", "enable_hashjoin = off", "plan_cache_mode = force_generic_plan"] {
                try await database.runAsConsole(Query(PostgresStatement("SET \(setting)")) { _ in })
            }
            let explain = PostgresStatement("EXPLAIN ANALYZE " + query.sql, query.parameters)
            let plan = try await database.runAsConsole(
                Query(explain) { rows throws(PostgresError) in try rows.decode(String.self) })
            let counts = plan.flatMap { $0.matches(of: /actual time=\S+ rows=(\d+)/).compactMap { Int($0.1) } }
            #expect(counts.count > 3 && counts.allSatisfy { $0 <= 40 }, "\(plan)")
        }
    }

    @Test("figures of days and kinds of devices cover the range, for one Sync ID or for all")
    func days() async throws {
        try await StatisticsStoreTests.with { databases in
            let (database, evening) = (databases[0], Fact.evening)
            try await database.fold(
                [
                    .accepted(channel: 1, oplog: 1, at: evening), .accepted(channel: 3, oplog: 1, at: evening),
                    .accepted(channel: 1, oplog: 2, at: evening + 1_000),
                    .handedOut(channel: 1, oplog: 1, at: evening), .confirmed(channel: 1, oplog: 1, at: evening),
                    .handedOut(channel: 3, oplog: 1, at: evening),
                    .resent(channel: 3, oplog: 1, attempts: 7, at: evening),
                ])
            let (first, second) = (time(evening - evening % 86_400_000), time(evening + 500))
            func days(_ bizType: BizType?, to: WallTime) async throws -> [FigureStore.Day] {
                try await database.runAsConsole(
                    FigureStore.days(of: Self.app, bizType: bizType, from: time(evening), to: to))
            }
            let all = try await days(nil, to: second)
            #expect(
                all == [
                    FigureStore.Day(day: first, pushes: 2, arrivals: 1, deadLetters: 1),
                    FigureStore.Day(day: second, pushes: 1, arrivals: 0, deadLetters: 0),
                ])
            #expect(try await days(BizType("A"), to: first).map(\.pushes) == [1])
            func traits(_ bizType: BizType?) async throws -> [FigureStore.Traits] {
                try await database.runAsConsole(
                    FigureStore.traits(of: Self.app, bizType: bizType, from: first, to: second))
            }
            let version = "1.\(evening % 4)"
            let system: OperatingSystem? = evening % 3 == 0 ? nil : .android
            let both = FigureStore.Traits(operatingSystem: system, appVersion: version, handedOut: 2, confirmed: 1)
            #expect(try await traits(nil) == [both])
            #expect(try await traits(BizType("B")).map(\.confirmed) == [0])
            #expect(try await traits(BizType("none")).isEmpty)
        }
    }

    @Test("minutes add up to steps, with times to arrival; the devices of a step are those of its busiest minute")
    func minutes() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            let (database, begin) = (databases[0], now - 10 * Self.minute)
            var facts: [Fact] = (Int64(0)..<10).flatMap { number -> [Fact] in
                let at = begin + number * Self.minute
                return [
                    .accepted(channel: 1, oplog: number, at: at), .confirmed(channel: 1, oplog: number, at: at + 150),
                    .connected(gateway: 1, devices: Int(number), at: at), .connected(gateway: 2, devices: 1, at: at),
                ]
            }
            // The same minute again, as after a restart of the gateway.
            facts.append(.connected(gateway: 1, devices: 0, at: begin + 5_000))
            try await database.fold(facts)
            for instance in [Self.app, nil] {
                let steps = try await database.runAsConsole(
                    FigureStore.minutes(of: instance, from: time(begin), to: time(now), step: .seconds(300)))
                #expect(steps.map(\.begin) == [time(begin), time(begin + 5 * Self.minute)])
                #expect(steps.map(\.pushes) == [5, 5])
                #expect(steps.map(\.arrivals.total) == [5, 5])
                #expect(steps[0].arrivals.milliseconds(at: 1) == 200)
                let connected = try await database.runAsConsole(
                    FigureStore.connected(of: instance, from: time(begin), to: time(now), step: .seconds(300)))
                #expect(connected.map(\.devices) == [5, 10])
            }
            let other = try await database.runAsConsole(
                FigureStore.minutes(of: InstanceID("other"), from: time(begin), to: time(now), step: .seconds(60)))
            #expect(other.isEmpty)
        }
    }

    @Test("whole hours read the same from their own rows as from their minutes") func hours() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            let (database, begin) = (databases[0], now - now % 3_600_000 - 4 * 3_600_000)
            let facts: [Fact] = (Int64(0)..<160).flatMap { number -> [Fact] in
                let at = begin + number * 97_000
                return [
                    .accepted(channel: 1, oplog: number, at: at),
                    .confirmed(channel: 1, oplog: number, at: at + number * 50),
                ]
            }
            try await database.fold(facts)
            func steps(_ step: Duration) async throws -> [FigureStore.Step] {
                try await database.runAsConsole(
                    FigureStore.minutes(
                        of: Self.app, from: time(begin), to: time(begin + 5 * 3_600_000), step: step))
            }
            let (hours, minutes) = (try await steps(.seconds(2 * 3_600)), try await steps(.seconds(60)))
            #expect(hours.map(\.begin) == [0, 2, 4].map { time(begin + $0 * 3_600_000) })
            #expect(hours.map(\.pushes).reduce(0, +) == 160 && minutes.map(\.pushes).reduce(0, +) == 160)
            for hour in hours {
                var arrivals = ArrivalTimes()
                for minute in minutes where minute.begin >= hour.begin && minute.begin < hour.begin + .seconds(7_200) {
                    arrivals += minute.arrivals
                }
                #expect(hour.arrivals == arrivals)
            }
        }
    }

    @Test("a reply about minutes has at most 1,500 steps")
    func bound() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            try await databases[0].execute(
                """
                INSERT INTO statistics_accepted SELECT 'app', 1, to_timestamp(\(now / 1_000)) + n * interval '1 minute', 1
                FROM generate_series(0, 1600) n
                """)
            let steps = try await databases[0].runAsConsole(
                FigureStore.minutes(
                    of: Self.app, from: time(now), to: time(now + 2_000 * Self.minute), step: .zero))
            #expect(steps.count == FigureStore.stepsMax)
        }
    }

    @Test("S3: the time up to which figures are complete is known after the first fold, and only rises")
    func progress() async throws {
        try await TestDatabase.with(connections: 1) { [now] databases in
            #expect(try await databases[0].runAsConsole(FigureStore.foldedUntil) == nil)
            for (noted, expected) in [(now, now), (now + 5, now + 5), (now, now + 5)] {
                try await databases[0].runAsStatistics(StatisticsStore.recordProgress(upto: time(noted)))
                #expect(try await databases[0].runAsConsole(FigureStore.foldedUntil) == time(expected))
            }
        }
    }

    @Test("dead letters are listed for the days whose records are still stored")
    func deadLetters() async throws {
        try await StatisticsStoreTests.with { [now] databases in
            try await databases[0].fold(
                [
                    .resent(channel: 1, oplog: 1, attempts: 7, at: now),
                    .resent(channel: 1, oplog: 2, attempts: 7, at: now - 36 * 86_400_000),
                ])
            #expect(try await databases[0].runAsConsole(FigureStore.deadLetters(of: Self.app)) == 1)
        }
    }
}
