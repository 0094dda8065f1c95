import Foundation
import MobileSync
import Testing

@testable import LocalEntities

/// Every attribute is declared once, as a member of a Swift type.
@Suite("Entities: attributes are declared once") struct DeclaredOnceTests {
    enum Status: String, Codable, CaseIterable { case new, open, closed }
    enum Rank: Int, Codable, CaseIterable {
        case low = 7
        case high = 9
    }

    struct WorkOrder: EntityRecord, Equatable {
        static let entityType = EntityType(
            of: WorkOrder.self, key: \.id, indexed: [\.priority],
            relationships: [EntityRelationship("steps", to: Step.self, foreignKey: \.orderID, inverse: "order")],
            group: "work")

        struct Place: Codable, Equatable, Sendable {
            var city: String
            var tags: [String]
            var inner: [Place]?
        }
        enum CodingKeys: String, CodingKey {
            case id
            case title = "name"
            case priority, cost, price, isOpen, due, photo, raw, owner, page, status, rank, place, labels, counts
            case anything
        }

        var id: UUID
        var title: String
        var priority: Int?
        var cost: Double
        var price: Decimal?
        var isOpen: Bool
        var due: Date?
        var photo: Data?
        var raw: [UInt8]
        var owner: UUID?
        var page: URL?
        var status = Status.new
        var rank: Rank?
        var place: Place?
        var labels: [String]
        var counts: [String: Int]
        var anything: JSONValue

        var summary: String { "\(title), \(status)" }
    }

    struct Step: EntityRecord {
        static let entityType = EntityType(of: Step.self, key: \.id)
        var id: Int64
        var orderID: UUID
    }

    struct Unknown: EntityRecord {
        enum Kind: String, Codable { case one }
        static let entityType = EntityType(of: Unknown.self, key: \.id)
        var id: String
        var kind: Kind
    }

    private let file = StoreFile()

    private func store() throws -> EntityStore {
        try file.open(schema: EntitySchema([WorkOrder.entityType, Step.entityType]))
    }

    private func task(_ title: String, priority: Int? = nil, status: Status = .new) -> WorkOrder {
        WorkOrder(
            id: UUID(), title: title, priority: priority, cost: 0.1,
            price: Decimal(string: "1234567890123456789.01"), isOpen: true,
            due: Date(timeIntervalSince1970: 5), photo: nil, raw: [1, 2], owner: nil, page: URL(string: "https://a.b"),
            status: status, rank: .high, place: WorkOrder.Place(city: "x", tags: ["a"], inner: nil), labels: ["l"],
            counts: ["a": 1], anything: .object(["a": 1]))
    }

    @Test("names, types, nullability, key, index and relationships come from the Swift type") func declaration() throws
    {
        let type = WorkOrder.entityType
        #expect(type.name == "WorkOrder" && type.keyAttribute == "id" && type.group == "work")
        let expected: [(String, AttributeType, Bool)] = [
            ("id", .text, false), ("name", .text, false), ("priority", .integer, true), ("cost", .double, false),
            ("price", .decimal, true),
            ("isOpen", .boolean, false), ("due", .date, true), ("photo", .bytes, true), ("raw", .bytes, false),
            ("owner", .text, true), ("page", .text, true), ("status", .text, false), ("rank", .integer, true),
            ("place", .json, true), ("labels", .json, false), ("counts", .json, false), ("anything", .json, false),
        ]
        #expect(type.attributes.map(\.name) == expected.map(\.0))
        #expect(type.attributes.map(\.type) == expected.map(\.1))
        #expect(type.attributes.map(\.isNullable) == expected.map(\.2))
        #expect(type.attributes.filter(\.isIndexed).map(\.name) == ["priority"])
        #expect(type.relationships.first?.foreignKey == "orderID" && type.relationships.first?.childType == "Step")
    }

    @Test("a row of a derived type is stored and read as it is") func roundTrip() throws {
        let store = try store()
        let record = task("leak", priority: 3)
        _ = try store.create(record)
        #expect(try store.findAll(WorkOrder.self).map(\.record) == [record])
    }

    @Test("queries name members by key path: comparisons, nil, combinations, order") func keyPaths() throws {
        let store = try store()
        for (title, priority, status) in [("a", 1, Status.new), ("b", nil, .open), ("c", 3, .open), ("d", 2, .closed)] {
            _ = try store.create(task(title, priority: priority, status: status))
        }
        func titles(_ condition: RecordCondition<WorkOrder>) throws -> [String] {
            try store.findWithQuery(RecordQuery(WorkOrder.self).where(condition).sort(by: \.title)).map(\.title)
        }
        #expect(try titles(\.status == .open) == ["b", "c"])
        #expect(try titles(\.title == "a") == ["a"])
        #expect(try titles(\.title != "a") == ["b", "c", "d"])
        #expect(try titles(\.priority == nil) == ["b"] && titles(\.priority != nil) == ["a", "c", "d"])
        #expect(try titles(\.priority == 2) == ["d"] && titles(\.priority > 1) == ["c", "d"])
        #expect(try titles(\.priority >= 2) == ["c", "d"] && titles(\.priority < 2) == ["a"])
        #expect(try titles(\.title <= "b" && \.priority != nil) == ["a"])
        #expect(try titles(\.status == .closed || !(\.title > "a")) == ["a", "d"])
        #expect(try titles(.test(\.title, .like, "A")) == ["a"] && titles(\.rank == .high).count == 4)
        #expect(try titles(\.due == Date(timeIntervalSince1970: 5)).count == 4)
        #expect(try titles(RecordCondition(.test("isCreated", .equal, true))).count == 4)
        #expect(try store.find(WorkOrder.self, \.isOpen == false).isEmpty)
        let query = RecordQuery(WorkOrder.self).where(\.status == .open).where(\.priority != nil)
        #expect(try store.countWithQuery(query) == 1)
        let page = RecordQuery(WorkOrder.self).sort(by: \.title, descending: true).page(skip: 1, take: 2)
        #expect(try store.findWithQuery(page).map(\.title) == ["c", "b"])
    }

    @Test("observe gives typed rows of a query by key path", .timeLimit(.minutes(1))) func observation() async throws {
        let store = try store()
        var states = store.observe(RecordQuery(WorkOrder.self).where(\.status == .open)).makeAsyncIterator()
        #expect(try await states.next()?.isEmpty == true)
        _ = try store.create(task("a", status: .open))
        #expect(try await states.next()?.map(\.title) == ["a"])
    }

    @Test("joined rows are tested by alias and attribute") func joins() throws {
        let store = try store()
        let task = try store.create(task("a"))
        _ = try store.create(self.task("b"))
        _ = try store.create(Step(id: 4, orderID: task.id))
        let query = RecordQuery(WorkOrder.self).join("steps", as: "s").where(RecordCondition(.test("s.id", .equal, 4)))
        #expect(try store.findWithQuery(query).map(\.title) == ["a"])
        let joined = try store.findAll(Step.self)[0]
        #expect(try store.parent(of: joined, "order", as: WorkOrder.self)?.title == "a")
    }

    @Test("a key path to a computed member, a value of another type and a type without samples are refused")
    func refused() throws {
        let store = try store()
        let computed = #expect(throws: EntityError.self) { try store.find(WorkOrder.self, \.summary == "x") }
        #expect(computed?.code == .noSuchAttribute)
        let wrong = #expect(throws: EntityError.self) { try store.find(WorkOrder.self, .test(\.labels, .equal, ["x"])) }
        #expect(wrong?.code == .wrongDataType)
        let unknown = #expect(throws: EntityError.self) { try EntitySchema([Unknown.entityType]) }
        #expect(unknown?.code == .invalidDeclaration && unknown?.message.contains("CaseIterable") == true)
    }
}
