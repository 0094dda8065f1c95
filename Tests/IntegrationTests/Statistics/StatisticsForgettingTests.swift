import Foundation
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Removal of old statistics", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct StatisticsForgettingTests {
    private typealias Fact = StatisticsFact

    private static let record = [
        "statistics_oplog", "statistics_delivery", "statistics_pull", "statistics_discarded", "statistics_target_day",
        "statistics_accepted", "statistics_arrival", "statistics_connected",
    ]

    private static func ago(days: Int64) -> Int64 {
        Int64(Date.now.timeIntervalSince1970 * 1_000) - days * 86_400_000
    }

    /// Facts that write a row to every table.
    private static func facts(oplogs: ClosedRange<Int64>, at: Int64) -> [Fact] {
        oplogs.flatMap { oplog -> [Fact] in
            [
                .accepted(channel: 1, oplog: oplog, at: at),
                .handedOut(channel: 1, oplog: oplog, device: 0, at: at + 1),
                .confirmed(channel: 1, oplog: oplog, device: 1, at: at + 2),
                .handedOut(channel: 6, oplog: oplog, device: 2, at: at),
                .discarded(channel: 1, after: 0, upto: oplog, at: at),
                .connected(gateway: 1, devices: 1, at: at),
            ]
        }
    }

    private static func counts(in database: TestDatabase) async throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for table in record + ["statistics_day", "statistics_day_traits"] {
            let found = try await database.rows("SELECT count(*)::text FROM \(table)", columns: 1)[0][0]
            counts[table] = Int(found ?? "")
        }
        return counts
    }

    @Test("records and figures of minutes are removed after 35 days, in steps, and nothing younger is")
    func record() async throws {
        try await StatisticsStoreTests.with { databases in
            let database = databases[0]
            try await database.fold(Self.facts(oplogs: 1...50, at: Self.ago(days: 34)))
            let young = try await Self.counts(in: database)
            #expect(Self.record.allSatisfy { young[$0] ?? 0 > 0 })
            try await database.fold(Self.facts(oplogs: 51...150, at: Self.ago(days: 37)))
            var steps: [Int] = []
            repeat {
                steps.append(try await database.runAsStatistics(StatisticsStore.forget(rows: 20)))
            } while steps.last != 0 && steps.count < 100
            #expect(steps.count > 5 && steps.allSatisfy { $0 <= 20 * 13 })
            let left = try await Self.counts(in: database)
            for table in Self.record { #expect(left[table] == young[table], "\(table)") }
            // The figures of days stay.
            #expect(left["statistics_day"] ?? 0 > young["statistics_day"] ?? 0)
        }
    }

    @Test("an oplog with more devices than one step removes is removed with the last of them")
    func crowd() async throws {
        try await StatisticsStoreTests.with { databases in
            let at = Self.ago(days: 36)
            let facts = (0..<100).map { Fact.handedOut(channel: 6, oplog: 1, device: $0, at: at) }
            try await databases[0].fold(facts)
            let first = try await databases[0].runAsStatistics(StatisticsStore.forget(rows: 10))
            #expect(first > 0)
            var counts = try await Self.counts(in: databases[0])
            #expect(counts["statistics_oplog"] == 1 && counts["statistics_delivery"] == 80)
            while try await databases[0].runAsStatistics(StatisticsStore.forget(rows: 10)) > 0 {}
            counts = try await Self.counts(in: databases[0])
            #expect(counts["statistics_oplog"] == 0 && counts["statistics_pull"] == 0)
        }
    }

    @Test("figures of days are removed after 400 days")
    func days() async throws {
        try await StatisticsStoreTests.with { databases in
            for days: Int64 in [399, 402] {
                try await databases[0].fold(Self.facts(oplogs: 1...1, at: Self.ago(days: days)))
                while try await databases[0].runAsStatistics(StatisticsStore.forget(rows: 100)) > 0 {}
                let left = try await Self.counts(in: databases[0])
                #expect(left["statistics_oplog"] == 0 && left["statistics_day"] == 1)
            }
        }
    }

    @Test("each table that is searched by age has an index that begins with the age")
    func indexes() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let sql = """
                SELECT c.relname::text, a.attname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
                WHERE i.indpred IS NULL AND c.relname ~ '^statistics_'
                """
            let found = Set(try await databases[0].rows(sql, columns: 2).map { "\($0[0] ?? "").\($0[1] ?? "")" })
            for column in [
                "statistics_oplog.noted_at", "statistics_discarded.discarded_at", "statistics_target_day.day",
                "statistics_accepted.begins_at", "statistics_arrival.begins_at", "statistics_connected.minute",
                "statistics_day.day", "statistics_day_traits.day",
            ] { #expect(found.contains(column), "\(column)") }
        }
    }
}
