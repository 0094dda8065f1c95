import Foundation
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: queries") struct QueryTests {
    private let file = StoreFile()
    private static let key = [UInt8](repeating: 3, count: 32)
    private static let texts = ["", "a", "A", "ab", "aB", "b%", "a_b", "ä", "Äb", "e\u{301}", "é", "[a]", "a\\b", "ba"]
    private static let patterns = ["", "%", "_", "a%", "%b", "%a%", "a_b", "a\\_b", "\\%", "_%_", "%\\", "É", "ä%"]
    private static let globs = ["", "*", "?", "a*", "*b", "*a*", "a?b", "??", "ä*", "*é"]

    /// A store with random rows of three types, some pending, some deleted.
    private func fill(_ store: EntityStore, _ generator: inout SeededGenerator) throws -> NaiveQuery {
        var oplogs: [String: [[UInt8]]] = [:]
        for number in 0..<20 {
            var fields: [String: JSONValue] = ["title": .text(Self.texts.randomElement(using: &generator) ?? "")]
            func maybe(_ name: String, _ value: JSONValue) {
                if Bool.random(using: &generator) { fields[name] = value }
            }
            maybe("priority", .integer(Int64.random(in: -2...2, using: &generator)))
            maybe("cost", .number(Double(Int.random(in: -3...3, using: &generator)) / 2))
            maybe("price", .text("\(Decimal(Int.random(in: -11...11, using: &generator)) / 4)"))
            maybe("isOpen", .boolean(Bool.random(using: &generator)))
            maybe("due", .integer(Int64.random(in: 0...3, using: &generator)))
            maybe("photo", .text(["", "AQ==", "AQI="].randomElement(using: &generator) ?? ""))
            maybe("place", .object(["a": 1]))
            oplogs["Incident", default: []].append(
                try Sample.oplog("i\(number)", fields, counter: Int64.random(in: 0...3, using: &generator)))
            oplogs["Note", default: []].append(
                try Sample.oplog(
                    "n\(number)",
                    [
                        "incidentID": .text("i\(Int.random(in: 0...22, using: &generator))"),
                        "text": .text(Self.texts.randomElement(using: &generator) ?? ""),
                    ]))
            oplogs["Mark", default: []].append(
                try Sample.oplog("\(number)", ["noteID": .text("n\(Int.random(in: 0...22, using: &generator))")]))
        }
        for (type, payloads) in oplogs { try store.importOplogs(payloads, of: type) }
        for type in ["Incident", "Note"] {
            for var row in try store.findAll(type) where Int.random(in: 0..<4, using: &generator) == 0 {
                if Bool.random(using: &generator) {
                    try store.delete(&row)
                } else {
                    try row.set(type == "Note" ? "text" : "title", to: "new")
                    try store.update(&row)
                }
            }
        }
        var logged: Set<AttributeValue> = []
        for number in 0..<20 where Bool.random(using: &generator) {
            _ = try store.newLogRecord(level: .info, message: "x", component: "Incident", entityKey: "i\(number)")
            logged.insert(.text("i\(number)"))
        }
        var rows: [String: [Entity]] = [:]
        for type in ["Incident", "Note", "Mark"] {
            var query = EntityQuery(type)
            query.includesDeleted = true
            rows[type] = try store.findWithQuery(query)
        }
        return NaiveQuery(rows: rows, logged: logged)
    }

    private func randomValue(_ type: AttributeType, _ generator: inout SeededGenerator) -> AttributeValue {
        switch type {
        case .text: .text((Self.texts + ["C", "N", "new"]).randomElement(using: &generator) ?? "")
        case .integer: .integer(Int64.random(in: -2...3, using: &generator))
        case .double: .double(Double(Int.random(in: -3...3, using: &generator)) / 2)
        case .decimal: .decimal(Decimal(Int.random(in: -11...11, using: &generator)) / 4)
        case .boolean: .boolean(Bool.random(using: &generator))
        case .date: .date(Date(timeIntervalSince1970: Double(Int.random(in: 0...3, using: &generator)) / 1_000))
        case .bytes: .bytes([[], [1], [1, 2]].randomElement(using: &generator) ?? [])
        case .json: .null
        }
    }

    private func randomTest(_ prefix: String, _ type: EntityType, _ generator: inout SeededGenerator) -> EntityCondition
    {
        let state: [(String, AttributeType)] = [
            ("hasLogRecords", .boolean),
            ("pending", .boolean), ("pendingChange", .text), ("isDeleted", .boolean), ("replayCounter", .integer),
            ("isCreated", .boolean), ("isUpdated", .boolean), ("replayPending", .integer), ("replayFailure", .integer),
        ]
        let names = type.attributes.map { ($0.name, $0.type) } + (prefix.isEmpty ? state : [])
        let (name, kind) = names.randomElement(using: &generator) ?? ("id", .text)
        let comparisons = AttributeTest.Comparison.allCases.filter { $0.applies(to: kind) }
        let comparison = comparisons.randomElement(using: &generator) ?? .isNull
        switch comparison {
        case .isNull, .notNull: return .test(prefix + name, comparison)
        case .isIn, .notIn:
            let values = (0..<Int.random(in: 0...3, using: &generator)).map { _ in randomValue(kind, &generator) }
            return .test(prefix + name, comparison, values: values)
        case .like, .notLike: return .test(prefix + name, comparison, .text(pick(Self.patterns, &generator)))
        case .match, .notMatch: return .test(prefix + name, comparison, .text(pick(Self.globs, &generator)))
        default:
            if kind == .text, Int.random(in: 0..<4, using: &generator) == 0 {
                return .test(prefix + name, comparison, attribute: "id")
            }
            return .test(prefix + name, comparison, randomValue(kind, &generator))
        }
    }

    private func pick(_ texts: [String], _ generator: inout SeededGenerator) -> String {
        texts.randomElement(using: &generator) ?? ""
    }

    private func randomCondition(
        _ sources: [(String, EntityType)], depth: Int, _ generator: inout SeededGenerator
    ) -> EntityCondition {
        guard depth > 0, Int.random(in: 0..<3, using: &generator) > 0 else {
            let (prefix, type) = sources.randomElement(using: &generator) ?? ("", Sample.incident)
            return randomTest(prefix, type, &generator)
        }
        let count = Int.random(in: 0...3, using: &generator)
        let parts = (0..<count).map { _ in randomCondition(sources, depth: depth - 1, &generator) }
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: return .and(parts)
        case 1: return .or(parts)
        default: return .not(randomCondition(sources, depth: depth - 1, &generator))
        }
    }

    private func randomQuery(_ generator: inout SeededGenerator) -> EntityQuery {
        var query = EntityQuery(Bool.random(using: &generator) ? "Incident" : "Note")
        var sources = [("", query.typeName == "Incident" ? Sample.incident : Sample.note)]
        if Bool.random(using: &generator) {
            if query.typeName == "Incident" {
                query = query.join("notes", as: "n")
                sources.append(("n.", Sample.note))
                if Bool.random(using: &generator) {
                    query = query.join("marks", as: "m", of: "n")
                    sources.append(("m.", Sample.mark))
                }
            } else {
                query = query.join("incident", as: "i").join("marks", as: "m")
                sources += [("i.", Sample.incident), ("m.", Sample.mark)]
            }
        }
        if Int.random(in: 0..<8, using: &generator) > 0 {
            query = query.where(randomCondition(sources, depth: 3, &generator))
        }
        for _ in 0..<Int.random(in: 0...2, using: &generator) {
            let name =
                sources[0].1.attributes.filter { $0.type != .json }.randomElement(using: &generator)?.name ?? "id"
            query = query.sort(by: name, descending: Bool.random(using: &generator))
        }
        query.includesDeleted = Bool.random(using: &generator)
        if Bool.random(using: &generator) {
            query = query.page(
                skip: Int.random(in: 0...4, using: &generator),
                take: Bool.random(using: &generator) ? Int.random(in: 0...8, using: &generator) : nil)
        }
        return query
    }

    @Test("SQL returns the same rows as the naive evaluation, readable and encrypted", arguments: [false, true])
    func meaning(isSealed: Bool) async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        let store = try file.open(key: isSealed ? Self.key : nil)
        let naive = try fill(store, &generator)
        var found = 0
        for number in 0..<1_500 {
            // The other tests of the process also need this thread.
            await Task.yield()
            let query = randomQuery(&generator)
            let expected = naive.keys(query)
            let keys = try store.findWithQuery(query).map(\.key)
            guard keys == expected, try store.countWithQuery(query) == expected.count else {
                Issue.record("seed \(seed), \(number): \(query) finds \(keys), not \(expected)")
                return
            }
            found += keys.count
        }
        #expect(found > 1_000, "seed \(seed): queries that find nothing prove little")
    }

    @Test("decimals keep all digits, have the order of numbers, and an exact sum", arguments: [false, true])
    func decimals(isSealed: Bool) throws {
        let store = try file.open(key: isSealed ? Self.key : nil)
        let texts = ["9", "10.5", "-1234567890123456789.01", "0.1", "0.2", "1234567890123456789.02"]
        for (number, text) in texts.enumerated() {
            var row = try store.makeEntity("Incident")
            try row.set("id", to: .text("\(number)"))
            try row.set("title", to: "t")
            try row.set("price", to: .decimal(try #require(Decimal(string: text))))
            try store.create(&row)
        }
        let sorted = try store.findWithQuery(EntityQuery("Incident").sort(by: "price"))
        #expect(
            sorted.map { "\($0.fields["price"]?.asDecimal ?? 0)" } == [texts[2], "0.1", "0.2", "9", "10.5", texts[5]])
        #expect(try store.find("Incident", .test("price", .greaterThan, 9)).count == 2)
        #expect(try store.find("Incident", .test("price", .isIn, values: [9, .double(0.1)])).map(\.key) == ["0", "3"])
        let columns = EntityQuery("Incident").select(.sum("price"), .minimum("price"), .maximum("price"))
        let values = try store.executeQuery(columns).rows[0].map { "\($0.asDecimal ?? 0)" }
        #expect(values == ["19.81", texts[2], texts[5]])
        try store.importOplogs([Sample.oplog("9", ["title": "t", "price": "12.50"])], of: "Incident")
        #expect(try store.incident("9").fields["price"] == .decimal(12.5))
        try store.importOplogs([Sample.oplog("10", ["title": "t", "price": "12,5"])], of: "Incident")
        #expect(try store.logRecords().count == 1, "it is no decimal")
    }

    @Test("columns: counts, sums and groups, sorted, distinct, joined") func columns() throws {
        let store = try file.open(key: Self.key)
        for (id, title, priority, cost) in [("1", "a", 1, 1.5), ("2", "b", 1, 2.5), ("3", "a", 2, 4.0)] {
            let fields: [String: JSONValue] = [
                "title": .text(title), "priority": .integer(Int64(priority)), "cost": .number(cost),
            ]
            try store.importOplogs([Sample.oplog(id, fields)], of: "Incident")
        }
        try store.importOplogs([Sample.oplog("n", ["incidentID": "3", "text": "x"])], of: "Note")
        let grouped = EntityQuery("Incident").select(.attribute("priority"), .count, .sum("cost"), .average("cost"))
            .select(.minimum("title"), .maximum("cost")).group(by: "priority").sort(by: "count", descending: true)
        let result = try store.executeQuery(grouped)
        #expect(result.columns.prefix(3) == ["priority", "count", "sum(cost)"])
        #expect(result.rows == [[1, 2, 4.0, 2.0, "a", 2.5], [2, 1, 4.0, 4.0, "a", 4.0]])
        #expect(result.value(row: 1, "sum(cost)") == 4.0 && result.value(row: 2, "count") == nil)
        var titles = EntityQuery("Incident").select(.attribute("title")).sort(by: "title", descending: true)
        #expect(try store.executeQuery(titles).rows == [["b"], ["a"], ["a"]])
        titles.isDistinct = true
        #expect(try store.executeQuery(titles.page(skip: 1, take: 5)).rows == [["a"]])
        let joined = EntityQuery("Note").join("incident", as: "i").select(.attribute("i.title"), .attribute("text"))
        #expect(try store.executeQuery(joined).rows == [["a", "x"]])
        let none = EntityQuery("Incident").where(.or([])).select(.count, .sum("cost"))
        #expect(try store.executeQuery(none).rows == [[0, .null]])
    }

    static let wrong: [(EntityError.Code, EntityQuery)] = [
        (.noSuchClass, EntityQuery("Nothing")), (.noSuchClass, EntityQuery("Incident\" --")),
        (.noSuchAttribute, EntityQuery("Incident").where(.test("nothing", .isNull))),
        (.noSuchAttribute, EntityQuery("Incident").where(.test("title\" OR 1 --", .isNull))),
        (.noSuchAttribute, EntityQuery("Incident").where(.test("x.title", .isNull))),
        (.noSuchAttribute, EntityQuery("Incident").join("nothing", as: "n")),
        (.noSuchAttribute, EntityQuery("Incident").join("marks", as: "m", of: "n")),
        (.noSuchAttribute, EntityQuery("Incident").sort(by: "a_title")),
        (.invalidArgument, EntityQuery("Incident").join("notes", as: "n").join("notes", as: "n")),
        (.invalidArgument, EntityQuery("Incident").join("notes", as: "n").sort(by: "n.text")),
        (.invalidArgument, EntityQuery("Incident").page(skip: -1)),
        (.invalidArgument, EntityQuery("Incident").page(take: .max)),
        (.invalidArgument, EntityQuery("Incident").select(.count)),
        (.wrongDataType, EntityQuery("Incident").where(.test("title", .equal, 5))),
        (.wrongDataType, EntityQuery("Incident").where(.test("title", .equal, .null))),
        (.wrongDataType, EntityQuery("Incident").where(.test("title", .equal))),
        (.wrongDataType, EntityQuery("Incident").where(.test("title", .isIn, "a"))),
        (.wrongDataType, EntityQuery("Incident").where(.test("priority", .like, "a"))),
        (.wrongDataType, EntityQuery("Incident").where(.test("place", .equal, .json(.null)))),
        (.wrongDataType, EntityQuery("Incident").where(.test("isOpen", .lessThan, true))),
        (.wrongDataType, EntityQuery("Incident").where(.test("title", .equal, attribute: "priority"))),
        (
            .invalidArgument,
            EntityQuery("Incident").where(.test("title", .like, .text(String(repeating: "%", count: 1_001))))
        ),
        (.invalidArgument, EntityQuery("Incident").where((0..<21).reduce(.and([])) { inner, _ in .not(inner) })),
        (
            .invalidArgument,
            EntityQuery("Incident").where(
                .test("priority", .isIn, values: (0...30_000).map { .integer($0) }))
        ),
        (
            .invalidArgument,
            EntityQuery("Incident").where(.or(Array(repeating: .test("priority", .isNull), count: 2_001)))
        ),
    ]

    @Test("a query with an undeclared or impossible part is refused, and the error names it", arguments: wrong)
    func refused(
        code: EntityError.Code, query: EntityQuery
    ) throws {
        let store = try file.open()
        let error = #expect(throws: EntityError.self) { try store.findWithQuery(query) }
        #expect(error?.code == code)
    }

    @Test("impossible columns are refused, and the error names them") func refusedColumns() throws {
        let store = try file.open()
        let all = EntityQuery("Incident")
        let wrong: [(EntityError.Code, EntityQuery)] = [
            (.invalidArgument, all), (.wrongDataType, all.select(.sum("title"))),
            (.wrongDataType, all.select(.maximum("isOpen"))), (.noSuchAttribute, all.select(.minimum("x"))),
            (.invalidArgument, all.select(.attribute("title"), .count)),
            (.invalidArgument, all.select(.count).sort(by: "title")),
            (.invalidArgument, all.select(.attribute("title")).group(by: "priority")),
        ]
        for (code, query) in wrong {
            let error = #expect(throws: EntityError.self) { try store.executeQuery(query) }
            #expect(error?.code == code, "\(query)")
        }
    }

    @Test("conditions up to the limits of depth, number and length are answered") func bounds() throws {
        let store = try file.open(key: Self.key)
        try store.createIncident("1", title: String(repeating: "a", count: 999))
        let one = EntityCondition.test("title", .notEqual, "b")
        var deep = one
        for level in 0..<QueryCompiler.deepest {
            deep = level % 2 == 0 ? .not(deep) : .and(Array(repeating: deep, count: level < 3 ? 30 : 1) + [.and([])])
        }
        #expect(try store.countWithQuery(EntityQuery("Incident").where(deep)) == 1)
        let many = EntityCondition.and(Array(repeating: one, count: QueryCompiler.mostTests))
        #expect(try store.countWithQuery(EntityQuery("Incident").where(many)) == 1)
        let values = (1...QueryCompiler.mostArguments).map { AttributeValue.text("\($0)") }
        #expect(try store.find("Incident", .test("title", .notIn, values: values)).count == 1)
        let pattern = String(repeating: "a", count: 999) + "%"
        #expect(try store.find("Incident", .test("title", .like, .text(pattern))).count == 1)
    }
}
