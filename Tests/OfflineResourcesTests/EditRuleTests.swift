import Foundation
import MobileSync
import Testing

@testable import OfflineResources

@Suite("Rules of edits") struct EditRuleTests {
    @Test("each status, kind and policy has its verdict") func verdicts() {
        typealias Policy = ConflictResolutionPolicy
        func verdict(_ status: Int, _ kind: EditKind, _ policy: Policy, _ isUnconditional: Bool = false) -> EditVerdict
        {
            EditVerdict(status: status, kind: kind, policy: policy, isUnconditional: isUnconditional)
        }
        for kind in EditKind.allCases {
            for policy in Policy.allCases {
                for status in [200, 201, 204, 299] { #expect(verdict(status, kind, policy) == .applied) }
                for status in [408, 425, 429, 502, 503, 504] { #expect(verdict(status, kind, policy) == .later) }
                for status in [302, 304, 400, 403, 405, 409, 413, 422, 500, 501] {
                    #expect(verdict(status, kind, policy) == .refused, "\(status) \(kind) \(policy)")
                }
                #expect(verdict(401, kind, policy) == .signInNeeded)
            }
        }
        for status in [404, 410] {
            for policy in Policy.allCases { #expect(verdict(status, .delete, policy) == .applied) }
            for policy in Policy.allCases { #expect(verdict(status, .create, policy) == .refused) }
        }
        #expect(verdict(412, .delete, .clientWins) == .applied)
        #expect(verdict(412, .delete, .serverWins) == .dropped)
        #expect(verdict(412, .delete, .preserveConflict) == .conflict)
        #expect(verdict(412, .create, .preserveConflict) == .refused)
        for kind in [EditKind.update, .patch] {
            for status in [404, 410, 412] {
                #expect(verdict(status, kind, .preserveConflict) == .conflict)
                #expect(verdict(status, kind, .serverWins) == .dropped)
                #expect(verdict(status, kind, .clientWins) == (kind == .update ? .sendUnconditionally : .refused))
                for policy in Policy.allCases { #expect(verdict(status, kind, policy, true) == .refused) }
            }
        }
    }

    @Test(
        "two edits merge only where the result equals that of both, on any version of the service", arguments: 1...20
    )
    func merging(seed: UInt64) {
        var generator = Seeded(seed: seed)
        func value(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<(depth > 0 ? 5 : 3), using: &generator) {
            case 0: return .null
            case 1: return .integer(Int64.random(in: 0..<3, using: &generator))
            case 2: return .text("t")
            default: return object(depth - 1)
            }
        }
        func object(_ depth: Int) -> JSONValue {
            var members: [String: JSONValue] = [:]
            for name in ["a", "b"] where Bool.random(using: &generator) { members[name] = value(depth) }
            return .object(members)
        }
        for _ in 0..<50 {
            let kinds = EditKind.allCases
            let first = (kind: kinds.randomElement(using: &generator) ?? .update, body: (try? object(2).json()) ?? [])
            let second = (kind: kinds.randomElement(using: &generator) ?? .update, body: (try? object(2).json()) ?? [])
            let merged: [(kind: EditKind, body: [UInt8])]
            switch EditMerge(first, second) {
            case .two: continue
            case .none: merged = []
            case .one(let kind, let body): merged = [(kind, body)]
            }
            let start = first.kind == .create ? nil : try? object(2).json()
            let (both, one) = (
                LocalVersion.of(start, edits: [first, second]), LocalVersion.of(start, edits: merged)
            )
            #expect(
                both.flatMap(JSONValue.parse) == one.flatMap(JSONValue.parse),
                "seed \(seed): \(first.kind) \(text(first.body)), \(second.kind) \(text(second.body))")
        }
    }

    @Test("which edits merge, by kind") func mergeTable() {
        let kinds = EditKind.allCases
        let found = kinds.map { first in
            kinds.map { second -> String in
                switch EditMerge((first, bytes(#"{"a":1}"#)), (second, bytes(#"{"b":2}"#))) {
                case .one(let kind, let body): "\(kind) \(text(body))"
                case .none: "none"
                case .two: "two"
                }
            }
        }
        // Rows: the earlier; columns: create, update, patch, delete.
        #expect(
            found == [
                ["two", #"create {"b":2}"#, #"create {"a":1,"b":2}"#, "none"],
                ["two", #"update {"b":2}"#, #"update {"a":1,"b":2}"#, "delete "],
                ["two", #"update {"b":2}"#, "two", "delete "], ["two", "two", "two", "two"],
            ])
    }

    @Test("a merge patch has the results of RFC 7396")
    func mergePatches() throws {
        for (target, patch, expected) in [
            (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"a":null}"#, "{}"),
            (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
            (#"["a"]"#, #"{"a":1}"#, #"{"a":1}"#), (#"{"e":null}"#, #"{"a":1}"#, #"{"a":1,"e":null}"#),
            ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
        ] { #expect(EditMerge.patched(bytes(target), with: bytes(patch)).map(text) == expected) }
        #expect(EditMerge.patched(bytes("x"), with: bytes("{}")) == nil)
    }

    @Test("numbers keep their digits, and invalid JSON is refused") func values() throws {
        let long = "12345678901234567890123456789.0123"
        let value = try #require(JSONValue.parse(bytes("[\(long),true,null,\"ä\",1]")))
        #expect(text(try value.json()) == "[\(long),true,null,\"ä\",1]")
        #expect(JSONValue.parse(bytes("")) == nil)
        #expect(JSONValue.parse(bytes("{]")) == nil)
        #expect(JSONValue.parse([0xFF, 0x22]) == nil)
        #expect(JSONValue.parse([UInt8](repeating: 91, count: 100_000)) == nil)
    }

    @Test("a Content-Range has a start and, if known, a total; any other text is refused") func contentRange() {
        #expect(ContentRange("bytes 100-199/1000").map { "\($0.start) \($0.total ?? 0)" } == "100 1000")
        #expect(ContentRange("Bytes 0-0/*").map { $0.start == 0 && $0.total == nil } == true)
        for text in ["", "bytes", "bytes /", "bytes //", "bytes 5/10", "bytes 9-5/10", "bytes */10", "items 0-1/2"] {
            #expect(ContentRange(text) == nil, "\(text)")
        }
    }

    @Test("comparisons depend on the kind of value") func comparisons() {
        let (one, two, a) = (JSONValue.number(1), JSONValue.number(2), JSONValue.text("abc"))
        func holds(_ left: JSONValue?, _ comparison: ResourceComparison, _ right: JSONValue) -> Bool {
            comparison.holds(left, right)
        }
        #expect(
            ResourceComparison.allCases.map { holds(one, $0, two) } == [
                false, true, true, true, false, false, false, false, false,
            ])
        #expect(
            ResourceComparison.allCases.map { holds(two, $0, two) } == [
                true, false, false, true, false, true, false, false, false,
            ])
        #expect(ResourceComparison.allCases.filter { holds(nil, $0, one) } == [.notEqual])
        #expect(ResourceComparison.allCases.filter { holds(a, $0, one) } == [.notEqual])
        #expect(
            holds(a, .contains, .text("b")) && holds(a, .startsWith, .text("ab")) && holds(a, .endsWith, .text("c")))
        #expect(!holds(a, .contains, .text("x")) && !holds(a, .startsWith, .text("b")) && holds(a, .less, .text("b")))
        #expect(holds(.integer(1), .equal, one) && holds(.decimal(2), .greaterOrEqual, two) && holds(1.5, .less, two))
        #expect(holds(.array([.object(["a": .integer(5)])]), .equal, .array([.object(["a": .number(5)])])))
        #expect(holds(.array([one]), .contains, one) && !holds(.array([one]), .contains, two))
    }

    private func edit(
        _ seq: Int64, _ uri: String, _ kind: EditKind = .update, _ body: String = "{}", base: String? = "\"1\"",
        policy: ConflictResolutionPolicy = .preserveConflict, isUnconditional: Bool = false,
        headers: ResourceHeaders = [:]
    ) throws -> StoredEdit {
        StoredEdit(
            seq: seq, id: "id\(seq)", uri: try ResourceURI(uri), kind: kind, body: bytes(body),
            contentType: "application/json", headers: headers, baseTag: base, conflictPolicy: policy,
            isUnconditional: isUnconditional, state: .queued, isOffline: true, status: nil, message: nil)
    }

    @Test("If-Match is the last tag, * where the client wins, and absent without a version to match")
    func conditions() throws {
        #expect(try edit(1, "/a").condition == "\"1\"")
        #expect(try edit(1, "/a", policy: .serverWins).condition == "\"1\"")
        #expect(try edit(1, "/a", policy: .clientWins).condition == "*")
        #expect(try edit(1, "/a", policy: .clientWins, isUnconditional: true).condition == nil)
        #expect(try edit(1, "/a", base: nil).condition == nil)
        #expect(try edit(1, "/a", .create, policy: .clientWins).condition == nil)
    }

    @Test("a batch ends before a second edit of a resource, no JSON, header fields, and a size above the limit")
    func batches() throws {
        #expect(EditBatch(try [edit(1, "/a"), edit(2, "/b", .delete, ""), edit(3, "/a")]).edits.map(\.seq) == [1, 2])
        #expect(EditBatch(try [edit(1, "/a"), edit(2, "/b", .update, "plain")]).edits.map(\.seq) == [1])
        #expect(EditBatch(try [edit(1, "/a"), edit(2, "/b", headers: ["X-A": "1"])]).edits.map(\.seq) == [1])
        let large = "\"" + String(repeating: "x", count: 600_000) + "\""
        #expect(EditBatch(try [edit(1, "/a", .update, large), edit(2, "/b", .update, large)]).edits.map(\.seq) == [1])
        #expect(EditBatch(try (1...150).map { try edit($0, "/\($0)") }).edits.count == 100)
        let json = try EditBatch([edit(1, "/c/~mss-1", .create, #"{"x":1}"#), edit(2, "/b", .delete, "")]).json()
        #expect(
            text(json) == #"{"edits":[{"body":{"x":1},"contentType":"application/json","id":"id1","method":"POST","#
                + #""uri":"/c"},{"id":"id2","ifMatch":"\"1\"","method":"DELETE","uri":"/b"}]}"#)
    }

    @Test("unreadable parts of a batch's answer are left out") func batchAnswers() {
        let now = Date(timeIntervalSince1970: 0)
        let found = EditBatch.outcomes(
            bytes(
                #"{"results":[{"id":"a","status":200,"etag":"\"2\"","body":{"y":1}},{"id":"b"},{"status":200},7,"#
                    + #"{"id":"c","status":99},{"id":"d","status":412.5}]}"#), asOf: now)
        #expect(found?.keys.sorted() == ["a"])
        #expect(found?["a"]?.etag == "\"2\"" && found?["a"]?.body.map(text) == #"{"y":1}"#)
        for bad in ["", "[]", "{}", #"{"results":1}"#] { #expect(EditBatch.outcomes(bytes(bad), asOf: now) == nil) }
    }

    @Test("an answer's body is the new version only with a tag, and when it is an object") func answers() {
        let now = Date(timeIntervalSince1970: 0)
        #expect(EditAnswer(etag: "\"1\"", body: bytes("{}"), asOf: now).body == bytes("{}"))
        #expect(EditAnswer(etag: nil, body: bytes("{}"), asOf: now).body == nil)
        #expect(EditAnswer(etag: "\"1\"", body: bytes("saved"), asOf: now).body == nil)
        for bad in ["1", "*", "\"a\", \"b\"", "\"a\nb\"", "W/1", ""] {
            #expect(EditAnswer(etag: bad, body: nil, asOf: now).etag == nil, "\(bad)")
        }
        #expect(EditAnswer(etag: "W/\"1\"", body: nil, asOf: now).etag == "W/\"1\"")
    }
}

/// SplitMix64: a failure reports the seed.
struct Seeded: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
