import Credentials
import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Audit records in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct RecordStoreTests {
    private static let app = InstanceID("app")

    private static func entry(
        _ number: Int, actor: String = "console:alice", action: OperationAction = .createSync,
        instance: InstanceID? = app
    ) -> OperationEntry {
        OperationEntry(
            actor: OperationActor(actor, from: "192.0.2.\(number)"), action: action, instanceID: instance,
            subject: "s\(number)", after: #"{"n":\#(number)}"#)
    }

    /// Every record, and whether the chain is whole.
    private static func chain(
        _ database: TestDatabase
    ) async throws -> (records: [OperationRecord], fault: RecordChainVerifier.Fault?) {
        var (records, verifier) = ([OperationRecord](), RecordChainVerifier())
        while true {
            let query = RecordStore.oldest(after: records.last?.number ?? 0, limit: RecordStore.pageMax)
            let page = try await database.run(query)
            for record in page.records {
                records.append(record)
                if let fault = verifier.verify(record) { return (records, fault) }
            }
            if !page.hasMore { return (records, verifier.end(at: page.head)) }
        }
    }

    @Test("SEC15: concurrent records each get a number; no gap, no fork, and the chain is whole")
    func concurrent() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            try await databases[0].configure()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (writer, database) in databases.enumerated() {
                    group.addTask {
                        for round in 0..<60 {
                            _ = try await database.run(RecordStore.add(Self.entry(round, actor: "console:\(writer)")))
                            let switched = ControlStore.setOnline(
                                (round + writer).isMultiple(of: 2), Self.app, BizType("B"), by: "mssctl:\(writer)")
                            _ = try await database.run(switched)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let (records, fault) = try await Self.chain(databases[0])
            #expect(fault == nil && records.map(\.number) == Array(1...Int64(records.count)))
            #expect(records.count(where: { $0.action == .createSync }) == 240)
            #expect(
                zip(records, records.dropFirst()).allSatisfy { $0.recordedAtMicroseconds <= $1.recordedAtMicroseconds })
            // Each switch records the former value, read under the same lock.
            let switches = records.filter { $0.before != nil && $0.after != nil }
            for (one, next) in zip(switches, switches.dropFirst()) { #expect(one.after == next.before) }
            #expect(switches.count > 4)
        }
    }

    @Test(
        "SEC15: a change by the database's owner is found",
        arguments: [
            "UPDATE operation_record SET actor = 'x' WHERE number = 3",
            "UPDATE operation_record SET source = '192.0.2.9' WHERE number = 3",
            "UPDATE operation_record SET action = 2 WHERE number = 3",
            "UPDATE operation_record SET instance_id = 'x' WHERE number = 3",
            "UPDATE operation_record SET subject = 'x' WHERE number = 3",
            "UPDATE operation_record SET before = '{}' WHERE number = 3",
            "UPDATE operation_record SET after = NULL WHERE number = 3",
            "UPDATE operation_record SET recorded_at = recorded_at + interval '1 microsecond' WHERE number = 3",
            "UPDATE operation_record SET hash = previous_hash WHERE number = 3",
            "DELETE FROM operation_record WHERE number = 3", "DELETE FROM operation_record WHERE number = 5",
            "DELETE FROM operation_record", "UPDATE record_head SET number = 4",
            """
            UPDATE operation_record SET number = -3 WHERE number = 3;
            UPDATE operation_record SET number = 3 WHERE number = 4;
            UPDATE operation_record SET number = 4 WHERE number = -3
            """,
        ])
    func tampered(_ script: String) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            for number in 1...5 { _ = try await databases[0].run(RecordStore.add(Self.entry(number))) }
            #expect(try await Self.chain(databases[0]).fault == nil)
            try await databases[0].execute(script)
            #expect(try await Self.chain(databases[0]).fault != nil)
        }
    }

    @Test("SEC15: line breaks, control characters and quotes are stored as escapes, in one line")
    func escapes() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            var entry = Self.entry(1, actor: "console:a\r\nb")
            entry.subject = "a\u{1b}\"\\"
            entry.after = #"{"text":"a\nb"}"#
            let number = try await databases[0].run(RecordStore.add(entry))
            let record = try #require(try await databases[0].run(RecordStore.record(number)))
            #expect(record.actor == #"console:a\r\nb"# && record.subject == #"a\u001b\"\\"#)
            #expect(record.after == #"{"text": "a\nb"}"#)
            let found = try await databases[0].run(RecordStore.page(RecordFilter(actor: entry.actor.name), limit: 9))
            #expect(found.records == [record], "the filter uses the actor unchanged")
            #expect(try await databases[0].run(RecordStore.record(2)) == nil)
        }
    }

    @Test("SEC10: an operator's connection records for its own instance, and for no other")
    func operatorsInstance() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let number = try await databases[0].runAsOperator(RecordStore.add(Self.entry(1)))
            #expect(number == 1)
            let refused = await refusal {
                try await databases[0].runAsOperator(RecordStore.add(Self.entry(1, instance: InstanceID("other"))))
            }
            #expect(refused?.code == .server(sqlState: "42501"))
        }
    }

    // MARK: Contents of pushes

    @Test(
        "C9: the content of a push is stored beside its record for its own time; a recall erases it, the record stays")
    func contents() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let (database, app) = (databases[0], InstanceID("app"))
            try await database.configure()
            let address = ChannelAddress(
                target: TargetAddress(instanceID: app, kind: .user, target: "u"), bizType: BizType("B"))
            func push(_ id: String) async throws -> Int64 {
                let append = OplogStore.Append(
                    address: address,
                    oplog: Oplog(
                        id: .zero, thirdMessageID: ThirdMessageID(id), payload: [1], isBinary: false,
                        targeting: Targeting(), validUntil: WallTime(milliseconds: 0),
                        createdAt: WallTime(milliseconds: 0), isPersistent: true))
                _ = try await database.append([append])
                let content = RecordStore.Push(
                    bizType: BizType("B"), target: "u", thirdMessageID: ThirdMessageID(id),
                    payload: Array("hello".utf8),
                    isBinary: false)
                return try await database.runAsOperator(
                    RecordStore.add(content, in: app, by: "console:alice", members: #"{"target":"u"}"#))
            }
            func content(_ number: Int64) async throws -> String? {
                try await database.runAsConsole(RecordStore.content(of: number)).map {
                    String(decoding: $0.payload, as: UTF8.self)
                }
            }
            let (recalled, old, kept) = (try await push("r"), try await push("o"), try await push("k"))
            let record = try #require(try await database.run(RecordStore.record(recalled)))
            #expect(record.action == .createSync && record.subject == "B")
            #expect(record.after?.contains("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824") == true)
            #expect(try await content(recalled) == "hello")
            _ = try await database.runAsOperator(OplogStore.recall(address, ThirdMessageID("r")))
            #expect(try await content(recalled) == nil)
            #expect(try await content(kept) == "hello")
            // The oplog's removal does not matter.
            try await database.execute("DELETE FROM oplog")
            try await database.execute(
                "UPDATE record_content SET recorded_at = now() - interval '181 days' WHERE number = \(old)")
            try await database.run(RecordStore.forgetContents)
            #expect(try await content(old) == nil)
            #expect(try await content(kept) == "hello")
            #expect(try await Self.chain(database).fault == nil, "the records are as they were")
        }
    }

    // MARK: Lists

    /// Records `count` entries from `days` ago on, one each minute. Even the owner could not do this with the function.
    private static func fill(_ database: TestDatabase, count: Int, days: Double) async throws {
        try await database.permitSlowStatements()
        try await database.execute(
            """
            INSERT INTO operation_record
            SELECT g, now() - make_interval(secs => \(days * 86_400)) + g * interval '1 minute', 'console:' || g % 3,
                '', (ARRAY[1, 5, 10])[1 + g / 3 % 3], (ARRAY['app', 'other'])[1 + g % 2], 's', NULL, NULL, '', ''
            FROM generate_series(1, \(count)) g;
            UPDATE record_head SET number = \(count);
            """)
    }

    @Test("C9: every combination of filters returns exactly the matching records, page by page, in both orders")
    func filters() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await Self.fill(database, count: 500, days: 1)
            let all = try await Self.unverified(database)
            #expect(all.count == 500)
            let middle = all[200].recordedAt
            for instance in [nil, Self.app] {
                for actor in [nil, "console:2"] {
                    for code in [nil, Int16(5)] {
                        for (from, to) in [(nil, nil), (middle, nil), (nil, middle), (middle, all[400].recordedAt)] {
                            let filter = RecordFilter(
                                instanceID: instance, actor: actor, actionCode: code, from: from, to: to)
                            let expected = all.filter { record in
                                (instance ?? record.instanceID) == record.instanceID
                                    && (actor ?? record.actor) == record.actor
                                    && (code ?? record.actionCode) == record.actionCode
                                    && record.recordedAtMicroseconds >= (from?.milliseconds ?? 0) * 1_000
                                    && record.recordedAtMicroseconds < (to?.milliseconds ?? 4_000_000_000_000) * 1_000
                            }.map(\.number)
                            let newest = try await Self.pages(database) {
                                RecordStore.page(filter, before: $0, limit: 37)
                            }
                            #expect(newest == expected.reversed(), "\(filter)")
                            let oldest = try await Self.pages(database) {
                                RecordStore.oldest(filter, after: $0 ?? 0, limit: 37)
                            }
                            #expect(oldest == expected, "\(filter)")
                        }
                    }
                }
            }
        }
    }

    @Test("C9: without a time a list has the last 7 days and at most 1,000 records; with a time it has all")
    func bounds() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            // From 8 days ago, a minute apart: the first 1,440 are too old.
            try await Self.fill(database, count: 4_000, days: 8)
            let list = try await Self.pages(database) { RecordStore.page(RecordFilter(), before: $0, limit: 200) }
            #expect(list == Array((3_001...4_000).reversed()))
            let rare = RecordFilter(instanceID: Self.app, actor: "console:0", actionCode: 10)
            let found = try await Self.pages(database) { RecordStore.page(rare, before: $0, limit: 200) }
            #expect(found.count < 1_000 && (found.last ?? 0) > 1_439 && (found.last ?? 0) < 1_480)
            let filter = RecordFilter(from: WallTime(milliseconds: 0))
            #expect(try await Self.pages(database) { RecordStore.page(filter, before: $0, limit: 200) }.count == 4_000)
        }
    }

    @Test("C9: any part of an actor's name finds the records of every matching actor, in upper or lower case")
    func actorParts() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            for (number, actor) in ["console:Alice", "mssctl:alice", "console:bob", "console:Alice"].enumerated() {
                _ = try await database.run(RecordStore.add(Self.entry(number, actor: actor)))
            }
            for (part, expected) in [
                ("alice", [4, 2, 1]), ("CONSOLE:", [4, 3, 1]), ("bo", [3]), ("nobody", []), ("", [4, 3, 2, 1]),
                ("%", []), ("_", []),
            ] as [(String, [Int64])] {
                let filter = RecordFilter(actorPart: part)
                let newest = try await Self.pages(database) { RecordStore.page(filter, before: $0, limit: 2) }
                #expect(newest == expected, "\(part)")
                let oldest = try await Self.pages(database) { RecordStore.oldest(filter, after: $0 ?? 0, limit: 2) }
                #expect(oldest == expected.reversed(), "\(part)")
            }
        }
    }

    private static func unverified(_ database: TestDatabase) async throws -> [OperationRecord] {
        var records: [OperationRecord] = []
        while true {
            let page = try await database.run(RecordStore.oldest(after: records.last?.number ?? 0, limit: 200))
            records += page.records
            if !page.hasMore { return records }
        }
    }

    /// The numbers of a list, page by page.
    private static func pages(
        _ database: TestDatabase, _ query: (Int64?) -> Query<RecordPage>
    ) async throws -> [Int64] {
        var numbers: [Int64] = []
        while true {
            let page = try await database.run(query(numbers.last))
            numbers += page.records.map(\.number)
            if !page.hasMore { return numbers }
        }
    }

    @Test("C9: for every filter, no more rows are read than are returned, however many there are")
    func rowsRead() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await Self.fill(database, count: 30_000, days: 30)
            // Each actor does one thing only: by the planner's statistics, few rows have this actor and this action.
            try await database.execute(
                """
                UPDATE operation_record SET actor = 'console:rare' WHERE number = 7;
                UPDATE operation_record SET actor = 'one:' || number % 40, action = 100 + number % 40
                WHERE number > 10000; ANALYZE
                """)
            for filter in 0..<32 {
                let instance = filter & 1 == 0 ? "NULL" : "'app'"
                let action = filter & 2 == 0 ? "NULL" : filter < 24 ? "5::smallint" : "107::smallint"
                let time = filter & 4 == 0 ? "NULL, NULL" : "now() - interval '20 days', now() - interval '10 days'"
                let actor = ["NULL", "'console:0'", "'console:rare'", "'one:7'"][filter / 8]
                let list = "list_records(\(instance), \(actor), \(action), \(time), 0, 30000, true, NULL, 200)"
                let counts = try await database.rows(
                    """
                    SELECT n::text, pg_stat_get_xact_tuples_fetched('operation_record'::regclass)::text
                    FROM (SELECT count(*) AS n FROM \(list) OFFSET 0) f
                    """, columns: 2)[0].compactMap { $0.flatMap { Int($0) } }
                #expect(counts[0] <= 200 && counts[1] <= counts[0] + 2, "\(list)")
            }
        }
    }
}
