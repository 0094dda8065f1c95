import DeviceProtocol
import Foundation
import GRDB
import SwiftProtobuf
import SyncModel
import Synchronization
import Testing

@testable import MobileSync

@Suite("SyncClient: operations in the local store") struct OperationOutboxTests {
    private final class Clock: Sendable {
        private let time = Mutex<Int64>(1_000)
        var now: WallTime { WallTime(milliseconds: time.withLock { $0 }) }
        func set(_ milliseconds: Int64) { time.withLock { $0 = milliseconds } }
    }

    private let clock = Clock()

    /// Runs the body with a function that opens the same store each time.
    private func withStore(
        key: [UInt8]? = nil, limit: Int = 100_000_000, _ body: (() throws -> LocalStore) throws -> Void
    ) throws {
        let path = NSTemporaryDirectory() + "store-\(UUID().uuidString).sqlite"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        try body { [clock] in
            let store = try LocalStore(
                path: path, instanceID: "app", deviceID: "d", key: key, limit: limit, clock: { clock.now })
            _ = try store.startOver()
            return store
        }
    }

    private func operation(
        _ id: String, body: String = "{}", children: [DeviceOperation] = [], component: String = "C"
    ) -> DeviceOperation {
        DeviceOperation(
            id: id, component: component, key: "k", name: "update", body: Array(body.utf8), children: children,
            submittedAt: WallTime(milliseconds: 3))
    }

    private func result(
        _ id: String, at time: Int64, accepted: Bool = true, user: String? = "u", imported: String? = nil
    ) -> String {
        let user = user.map { #","userId":"\#($0)""# } ?? ""
        let imported = imported.map { #","import":\#($0)"# } ?? ""
        return #"{"operationId":"\#(id)"\#(user),"component":"C","entityKey":"k","operation":"update","#
            + #""accepted":\#(accepted),"code":200,"level":"INFO","message":"m","requestId":"r","timestamp":\#(time)\#(imported)}"#
    }

    /// The service pushes results under an oplog id.
    private func push(
        _ results: [String], as id: Int64, after: Int64, to store: LocalStore, reread: UInt64 = 0
    ) throws -> StoreOutcome {
        let batch = Mss_Device_V1_ChannelBatch.with {
            $0.kind = .device
            $0.bizType = ReservedSyncID.results.text
            $0.after = after
            $0.upto = reread == 0 ? id : 0
            $0.reread = reread
            $0.entries = [
                .with {
                    $0.oplogID = id
                    $0.payload = Data("{\"results\":[\(results.joined(separator: ","))]}".utf8)
                }
            ]
        }
        return try store.store([batch], userID: nil, bindNumber: 0)
    }

    private func results(
        in store: LocalStore, of user: String = "u", components: Set<String>? = nil, after: [String: Int64] = [:]
    ) throws -> [SyncOperationResult] {
        var (found, shown) = ([SyncOperationResult](), after)
        while let (number, next) = try store.outbox.result(ofUser: user, of: components, after: shown) {
            shown[next.component] = number
            found.append(next)
        }
        return found
    }

    @Test("operations survive a restart in order; a known id changes nothing; only a waiting one is removed")
    func submit() throws {
        try withStore { open in
            do {
                let outbox = try open().outbox
                let child = DeviceOperation(id: "c", component: "L", key: "1", name: "create", body: [0, 255])
                try outbox.add([operation("a", children: [child]), operation("b")], ofUser: "u")
                try outbox.add([operation("b", body: "other"), operation("x")], ofUser: "v")
            }
            let outbox = try open().outbox
            #expect(try outbox.pending(ofUser: "u").map(\.id) == ["a", "b"])
            #expect(try outbox.pending(ofUser: "u")[0].children[0].body == [0, 255])
            #expect(try outbox.pending(ofUser: "u")[1].body == Array("{}".utf8))
            #expect(try outbox.cancel(["a", "x", "none"], ofUser: "u") == ["a"])
            #expect(try outbox.nextFrame(ofUser: "u", maxBytes: 1_000).map(\.id) == ["b"])
            #expect(try outbox.cancel(["b"], ofUser: "u") == [])
            try outbox.answered(taken: [], over: [], free: ["b"])
            #expect(try outbox.cancel(["b"], ofUser: "u") == ["b"])
            #expect(try outbox.pending(ofUser: "v").map(\.id) == ["x"])
            // The service may have stored an operation that was sent twice, and refused only the repeat.
            try outbox.add([operation("c")], ofUser: "u")
            for _ in 0..<2 { #expect(try outbox.nextFrame(ofUser: "u", maxBytes: 1_000).map(\.id) == ["c"]) }
            try outbox.answered(taken: [], over: [], free: ["c"])
            #expect(try outbox.cancel(["c"], ofUser: "u") == [])
        }
    }

    @Test("a frame has at most 64 operations that fit, always the first, and is repeated until the reply")
    func frames() throws {
        try withStore { open in
            let outbox = try open().outbox
            try outbox.add((0..<100).map { operation("o\($0)") }, ofUser: "u")
            let first = try outbox.nextFrame(ofUser: "u", maxBytes: 1_000_000)
            #expect(first.map(\.id) == (0..<64).map { "o\($0)" })
            #expect(try outbox.nextFrame(ofUser: "u", maxBytes: 1) == [first[0]])
            #expect((2..<10).contains(try outbox.nextFrame(ofUser: "u", maxBytes: 200).count))
            try outbox.answered(taken: first.map(\.id), over: [], free: [])
            #expect(try outbox.nextFrame(ofUser: "u", maxBytes: 1_000_000).map(\.id) == (64..<100).map { "o\($0)" })
            #expect(try outbox.pending(ofUser: "u").count == 100)
        }
    }

    @Test("a result ends its operation in the transaction that stores it; the app gets it until it has confirmed it")
    func results() throws {
        try withStore { open in
            do {
                let store = try open()
                try store.outbox.add([operation("a"), operation("b")], ofUser: "u")
                _ = try store.outbox.nextFrame(ofUser: "u", maxBytes: 1_000)
                try store.outbox.answered(taken: ["a", "b"], over: [], free: [])
                let outcome = try push(
                    [result("a", at: 5, imported: #"{"n": 1.50}"#)], as: 1, after: 0, to: store)
                #expect(outcome.hasResults && outcome.hasReports && outcome.filledChannels.isEmpty)
                #expect(outcome.acknowledgements.map(\.upto) == [1])
                #expect(try store.outbox.pending(ofUser: "u").map(\.id) == ["b"])
            }
            let store = try open()
            var handOut = HandOutSelector(channels: try store.startOver())
            #expect(try handOut.next(of: nil, userID: "u", from: store) == nil, "no handler is given results")
            let first = try #require(try results(in: store).first)
            #expect(first.operationID == "a" && first.imported == Array(#"{"n": 1.50}"#.utf8) && first.message == "m")
            #expect(try results(in: store, of: "v").isEmpty)
            try store.outbox.confirm(first)
            #expect(try results(in: store).isEmpty)
            #expect(try store.unreported.report(ofUser: "u", bindNumber: 1).confirmed.map(\.oplogIds) == [[1]])
        }
    }

    @Test("a result that comes again changes nothing; a later one of the same operation is another")
    func repeats() throws {
        try withStore { open in
            let store = try open()
            try store.outbox.add([operation("a")], ofUser: "u")
            #expect(try push([result("a", at: 5, accepted: false)], as: 1, after: 0, to: store).hasResults)
            try store.outbox.confirm(try #require(try results(in: store).first))
            #expect(try !push([result("a", at: 5, accepted: false)], as: 2, after: 1, to: store).hasResults)
            #expect(try !push([result("a", at: 4)], as: 3, after: 2, to: store).hasResults)
            #expect(try !push([result("a", at: 5, accepted: false)], as: 1, after: 0, to: store, reread: 7).hasResults)
            #expect(try results(in: store).isEmpty)
            #expect(try push([result("a", at: 9)], as: 4, after: 3, to: store).hasResults)
            #expect(try results(in: store).map(\.isAccepted) == [true])
            // A confirmation of the result that the app has read does not confirm the later one.
            let old = SyncOperationResult(
                operationID: "a", component: "", key: "", name: "", isAccepted: false, code: 0, level: "",
                message: "", requestID: "", at: Date(milliseconds: 5), imported: nil)
            try store.outbox.confirm(old)
            #expect(try results(in: store).count == 1)
        }
    }

    @Test("results of unknown operations go to the component that they name; invalid results are ignored")
    func strangers() throws {
        try withStore { open in
            let store = try open()
            let odd = [
                result("a", at: 5), result("b", at: 5, user: nil), #"{"operationId":""}"#, "7", #"{"accepted":true}"#,
            ]
            #expect(try push(odd, as: 1, after: 0, to: store).hasResults)
            #expect(try results(in: store).map(\.operationID) == ["a"])
            for (number, payload) in ["", "[", "{}", #"{"results":{}}"#, #"{"results":[}"#].enumerated() {
                let entry = Mss_Device_V1_Entry.with {
                    $0.oplogID = Int64(number + 2)
                    $0.payload = Data(payload.utf8)
                }
                let batch = Mss_Device_V1_ChannelBatch.with {
                    $0.kind = .device
                    $0.bizType = ReservedSyncID.results.text
                    $0.after = Int64(number + 1)
                    $0.upto = Int64(number + 2)
                    $0.entries = [entry]
                }
                #expect(try store.store([batch], userID: nil, bindNumber: 0).acknowledgements.count == 1)
            }
        }
    }

    @Test("readers of different components have their own results, in order, and do not wait for each other")
    func components() throws {
        try withStore { open in
            let store = try open()
            try store.outbox.add(
                (0..<9).map { operation("o\($0)", component: ["A", "B", "C"][$0 % 3]) }, ofUser: "u")
            try store.outbox.answered(
                taken: [],
                over: [8, 1, 3, 4, 0, 2].map { OperationRefusal(operationID: "o\($0)", code: 400, message: "") },
                free: [])
            func ids(_ components: Set<String>?, after: [String: Int64] = [:]) throws -> [String] {
                try results(in: store, components: components, after: after).map(\.operationID)
            }
            #expect(try ids(nil) == ["o8", "o1", "o3", "o4", "o0", "o2"])
            #expect(try ids(["A"]) == ["o3", "o0"] && ids(["B"]) == ["o1", "o4"] && ids(["C"]) == ["o8", "o2"])
            #expect(try ids(["A", "C"]) == ["o8", "o3", "o0", "o2"] && ids(["D"]).isEmpty && ids([]).isEmpty)
            #expect(try ids(nil, after: ["A": 3, "B": 1_000]) == ["o8", "o0", "o2"])
            #expect(try ids(["A", "B"], after: ["C": 1_000, "B": 2]) == ["o3", "o4", "o0"])
            for result in try results(in: store, components: ["A"]) { try store.outbox.confirm(result) }
            #expect(try ids(nil) == ["o8", "o1", "o4", "o2"])
        }
    }

    @Test("the result of a call is for its caller alone, also a second one; an unsent call ends with its process")
    func calls() throws {
        try withStore(key: [UInt8](repeating: 7, count: 32)) { open in
            do {
                let store = try open()
                try store.outbox.add([operation("a")], ofUser: "u", isCall: true)
                try store.outbox.add([operation("b")], ofUser: "u")
                #expect(try store.outbox.result(of: "a") == nil)
                _ = try push([result("a", at: 5, imported: "7"), result("b", at: 5)], as: 1, after: 0, to: store)
                _ = try push([result("a", at: 6, imported: "8")], as: 2, after: 1, to: store)
                let answer = try #require(try store.outbox.result(of: "a"))
                #expect(answer.imported == Array("8".utf8) && answer.operationID == "a" && answer.isAccepted)
                #expect(try results(in: store).map(\.operationID) == ["b"])
                try store.outbox.confirm(answer)
                #expect(try store.outbox.result(of: "a")?.imported == nil, "given once")
                try store.outbox.add([operation("c"), operation("d")], ofUser: "u", isCall: true)
                try store.outbox.add([operation("e")], ofUser: "u")
                #expect(try store.outbox.endCall("d").isWithdrawn && store.outbox.endCall("d").isWithdrawn)
                #expect(throws: SyncError.self, "an operation that was submitted is not withdrawn as a call") {
                    try store.outbox.add([operation("e")], ofUser: "u", isCall: true)
                }
                #expect(throws: SyncError.self, "another user does not get the answer") {
                    try store.outbox.add([operation("a")], ofUser: "v", isCall: true)
                }
            }
            #expect(try open().outbox.pending(ofUser: "u").map(\.id) == ["e"])
        }
    }

    @Test("an operation that the service can never accept has its result at once")
    func refused() throws {
        try withStore { open in
            let store = try open()
            try store.outbox.add([operation("a"), operation("b")], ofUser: "u")
            _ = try store.outbox.nextFrame(ofUser: "u", maxBytes: 1_000)
            try store.outbox.answered(
                taken: ["b"], over: [OperationRefusal(operationID: "a", code: 404, message: "none")], free: [])
            let result = try #require(try results(in: store).first)
            #expect(!result.isAccepted && result.code == 404 && result.message == "none" && result.component == "C")
            #expect(try store.outbox.pending(ofUser: "u").map(\.id) == ["b"])
        }
    }

    @Test("bodies and states are encrypted with the store's key, and again with a changed one")
    func sealed() throws {
        let keys = [UInt8](1...2).map { [UInt8](repeating: $0, count: 32) }
        try withStore(key: keys[0]) { open in
            let store = try open()
            try store.outbox.add([operation("a", body: "needle-1"), operation("b")], ofUser: "u")
            _ = try push([result("b", at: 5, imported: #""needle-2""#)], as: 1, after: 0, to: store)
            // The content of the file after the write-ahead log is merged.
            func raw() throws -> Data {
                try store.file.access("checkpoint") { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
                return try Data(contentsOf: URL(filePath: store.file.database.path))
            }
            #expect(try raw().range(of: Data("needle".utf8)) == nil)
            let before = try raw()
            try store.changeCipher(to: try PayloadCipher(key: keys[1]))
            #expect(try raw() != before && raw().range(of: Data("needle".utf8)) == nil)
            #expect(try store.outbox.pending(ofUser: "u").map(\.body) == [Array("needle-1".utf8)])
            #expect(try results(in: store)[0].imported == Array(#""needle-2""#.utf8))
            try store.changeCipher(to: nil)
            #expect(try raw().range(of: Data("needle-1".utf8)) != nil)
        }
    }

    @Test(
        "a full store refuses operations; a confirmed result is removed after 31 days"
    )
    func bounds() throws {
        try withStore(limit: 1_000_000) { open in
            let store = try open()
            let large = String(repeating: "x", count: 150_000)
            #expect(throws: SyncError.self) {
                for number in 0..<20 { try store.outbox.add([operation("o\(number)", body: large)], ofUser: "u") }
            }
            let count = try store.outbox.pending(ofUser: "u").count
            #expect((3..<7).contains(count))
            let refusals = (0..<count).map { OperationRefusal(operationID: "o\($0)", code: 400, message: "") }
            try store.outbox.answered(taken: [], over: refusals, free: [])
            for result in try results(in: store).dropFirst() { try store.outbox.confirm(result) }
            clock.set(32 * 86_400_000)
            _ = try store.startOver()
            try store.outbox.add([operation("o0"), operation("o1")], ofUser: "u")
            #expect(try store.outbox.pending(ofUser: "u").map(\.id) == ["o1"], "the result of o0 is not confirmed")
            #expect(try results(in: store).map(\.operationID) == ["o0"])
        }
    }
}
