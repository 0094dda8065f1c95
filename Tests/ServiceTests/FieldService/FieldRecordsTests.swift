import Foundation
import MobileSync
import Testing

@testable import FieldService

@Suite("The field service sample's backend")
struct FieldRecordsTests {
    private static func call(
        _ operation: String, _ key: String, fields: JSONValue, counter: Int64? = nil, changed: [JSONValue]? = nil,
        component: String = "Incident"
    ) -> OperationCall {
        var body: [String: JSONValue] = ["fields": fields]
        body["counter"] = counter.map { .integer($0) }
        body["changed"] = changed.map { .array($0) }
        return OperationCall(
            component: component, entityKey: key, operation: operation, userId: "ana", body: .object(body))
    }

    private static let pump: JSONValue = .object(["id": "1", "title": "Pump", "status": "open"])

    @Test("a repeated operation is executed once and answered the same, also by a new process")
    func once() throws {
        var records = FieldRecords(users: ["ana", "ben"])
        let create = Self.call("create", "1", fields: Self.pump)
        let first = records.perform(create, key: "k1")
        #expect(first.status == 200 && first.body.contains(#""counter":1"#) && records.owed.count == 1)
        let written = try JSONEncoder().encode(records)
        var read = try JSONDecoder().decode(FieldRecords.self, from: written)
        #expect(read.perform(create, key: "k1") == first && read.owed == records.owed)
        #expect(read.perform(create, key: "k2").status == 409, "another one of the same key")
        read.removeSent(read.owed)
        #expect(read.owed.isEmpty)
    }

    @Test("an update applies the changed fields of the newest version; only the backend names a photo")
    func counters() {
        var records = FieldRecords(users: ["ana", "ben"])
        _ = records.perform(Self.call("create", "1", fields: Self.pump), key: "k1")
        let edit: JSONValue = .object(["title": "x", "status": "closed", "photo": "mine"])
        let update = Self.call("update", "1", fields: edit, counter: 1, changed: ["status", "photo"])
        #expect(records.perform(update, key: "k2").status == 200)
        let row = records.rows["Incident/1"]
        #expect(row?.counter == 2 && row?.fields == ["id": "1", "title": "Pump", "status": "closed"])
        for stale in [update, Self.call("update", "1", fields: edit)] {
            let answer = records.perform(stale, key: "k\(UUID())")
            #expect(answer.status == 409 && answer.body.contains("another user has changed incident 1"))
        }
        #expect(records.rows["Incident/1"]?.counter == 2 && records.owed.count == 2)
        _ = records.putPhoto("1", Data("a".utf8), contentType: "image/jpeg", condition: nil)
        let second = Self.call("update", "1", fields: edit, counter: 2, changed: ["title"])
        #expect(records.perform(second, key: "k9").status == 200, "a photo is no conflict with an edit")
        #expect(records.rows["Incident/1"]?.fields["photo"] == "\"v1\"")
    }

    @Test("unknown, too long and unsupported operations are refused, and the refusal is stored")
    func refusals() {
        var records = FieldRecords(users: ["ana", "ben"])
        let long: JSONValue = .object(["title": .text(String(repeating: "x", count: 3_001))])
        for (call, status) in [
            (Self.call("update", "9", fields: Self.pump, counter: 1), 404),
            (Self.call("delete", "1", fields: Self.pump), 405), (Self.call("create", "1", fields: long), 413),
            (Self.call("create", "1", fields: "text"), 400),
            (Self.call("create", "1", fields: Self.pump, component: "Order"), 404),
        ] {
            #expect(records.perform(call, key: "\(status)").status == status)
        }
        #expect(records.rows.isEmpty && records.owed.isEmpty)
    }

    @Test("a photo is replaced only with the id of the current one; incident and caches are notified")
    func photos() {
        var records = FieldRecords(users: ["ana", "ben"])
        records.seed("Incident", ["1": ["id": "1"]])
        func put(_ text: String, _ condition: String?) -> FieldRecords.Answer {
            records.putPhoto("1", Data(text.utf8), contentType: "image/jpeg", condition: condition)
        }
        #expect(put("a", "\"v1\"").status == 412, "there is none")
        #expect(put("a", nil) == FieldRecords.Answer(status: 201, tag: "\"v1\""))
        #expect(put("b", nil) == FieldRecords.Answer(status: 412, tag: "\"v1\""))
        #expect(put("b", "\"v1\"").tag == "\"v2\"")
        #expect(put("d", "*").tag == "\"v3\"")
        #expect(records.rows["Incident/1"]?.fields["photo"] == "\"v3\"" && records.rows["Incident/1"]?.counter == 4)
        #expect(records.owed.map(\.bizType).filter { $0 == "MSS_RESOURCES" }.count == 3)
        let told = records.owed.last?.payload.replacing("\\/", with: "/") ?? ""
        #expect(told.contains(#""uri":"/photos/1""#) && told.contains("refresh"))
    }

    @Test("a message is pushed to all users, its count to all but the sender; a tap clears the count")
    func messages() {
        var records = FieldRecords(users: ["ana", "ben"])
        func say(_ text: JSONValue, _ key: String) -> FieldRecords.Answer {
            records.perform(
                OperationCall(
                    component: "FIELD_CHAT", entityKey: "all", operation: "say", userId: "ana",
                    body: .object(["text": text])), key: key)
        }
        #expect(say("hello", "k1").status == 200 && say("again", "k2").status == 200 && say(7, "k3").status == 400)
        #expect(records.owed.map(\.user) == [nil, "ben", nil, "ben"])
        #expect(records.owed.first?.payload.contains("hello") == true)
        #expect(records.owed.last?.payload.contains(#""number":2"#) == true)
        let tap = OperationCall(
            component: "MSS_BADGES", entityKey: "ben", operation: "tap", userId: "ben", body: .object([:]))
        let answer = records.perform(tap, key: "k4")
        #expect(answer.body.contains(#""style":"none""#) && answer.body.contains(#""version":3"#))
        _ = say("third", "k5")
        #expect(records.owed.last?.payload.contains(#""number":1"#) == true)
    }
}
