import DeviceProtocol
import Foundation
import MobileSync
import TestSupport
import Testing

extension RunningSystem {
    /// The client library against the running system, in the situations of a phone's life.
    ///
    /// A later push of another Sync ID, the marker, shows that an earlier push is not delivered.
    @Suite("Client library")
    struct ClientLibraryTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        private func push(_ count: Int, to user: String, from first: Int = 0, bizType: String = "UCHAT") async throws {
            for start in stride(from: first, to: first + count, by: 500) {
                let items = (start..<min(start + 500, first + count)).map { (bizType, user, "\(user)-\($0)") }
                let answers = try await caller.batch(items)
                #expect(answers.allSatisfy { $0.msg == "SUCCESS" || $0.msg == "NOT_ONLINE" })
            }
        }

        private func payloads(_ user: String, _ range: Range<Int>) -> [String] { range.map { "\(user)-\($0)" } }

        @Test("install and re-install: a new store gets all valid data; the same store gets only new data")
        func install() async throws {
            let first = TestDevice(stack, user: "sdk1", device: "sdk1-d")
            try await push(20, to: "sdk1")
            try await first.connected { try await shows(first, "UCHAT", payloads("sdk1", 0..<20)) }
            try await push(5, to: "sdk1", from: 20)
            try await first.connected { try await shows(first, "UCHAT", payloads("sdk1", 0..<25)) }
            let again = TestDevice(stack, user: "sdk1", device: "sdk1-d", install: 1)
            try await again.connected { try await shows(again, "UCHAT", payloads("sdk1", 0..<25)) }
        }

        @Test("a second device has its own position: both devices get everything once, in order")
        func secondDevice() async throws {
            let (phone, tablet) = (
                TestDevice(stack, user: "sdk2", device: "sdk2-a"), TestDevice(stack, user: "sdk2", device: "sdk2-b")
            )
            try await push(10, to: "sdk2")
            try await phone.connected(gateway: 0) {
                try await tablet.connected(gateway: 1) {
                    try await push(10, to: "sdk2", from: 10)
                    try await shows(phone, "UCHAT", payloads("sdk2", 0..<20))
                    try await shows(tablet, "UCHAT", payloads("sdk2", 0..<20))
                }
            }
        }

        @Test("K2: another user signs in, the first signs out: each sees only their own data, also data that waited")
        func userSwitch() async throws {
            try await push(3, to: "sdk3-a")
            try await push(3, to: "sdk3-b")
            let app = try SDKApp(stack, device: "sdk3-d")
            try await app.running {
                try app.client.bind(userID: "sdk3-a", sessionID: "s")
                try await app.shows(payloads("sdk3-a", 0..<3))
                try app.client.bind(userID: "sdk3-b", sessionID: "s")
                try await app.shows(payloads("sdk3-a", 0..<3) + payloads("sdk3-b", 0..<3))
                // Without a user, the data of both users waits.
                app.client.unbind()
                try await push(1, to: "sdk3-a", from: 3)
                try await push(1, to: "sdk3-b", from: 3)
                _ = await caller.call("DEVICE-LOCK", to: "sdk3-d", id: "lock", payload: "lock")
                let both = payloads("sdk3-a", 0..<3) + payloads("sdk3-b", 0..<3)
                try await app.shows(both + ["lock"])
                try app.client.bind(userID: "sdk3-a", sessionID: "s")
                try await app.shows(both + ["lock", "sdk3-a-3"])
                try app.client.bind(userID: "sdk3-b", sessionID: "s")
                try await app.shows(both + ["lock", "sdk3-a-3", "sdk3-b-3"])
                #expect(app.oplogs.filter { $0.userID == "sdk3-a" }.compactMap(\.text) == payloads("sdk3-a", 0..<4))
            }
        }

        @Test("an expired session: the app is notified, and checked data waits until the user has signed in again")
        func expiredSession() async throws {
            let app = try SDKApp(stack, device: "sdk4-d")
            try await push(3, to: "sdk4", bizType: "TRADE-SECURE")
            try await app.running {
                try app.client.bind(userID: "sdk4", sessionID: "bad-session")
                try await eventually("the app is notified", within: .seconds(10)) {
                    app.events.contains {
                        if case .sessionInvalid("sdk4", _) = $0 { true } else { false }
                    }
                }
                try await push(1, to: "sdk4")
                try await app.shows(["sdk4-0"])
                try app.client.bind(userID: "sdk4", sessionID: "good-session")
                try await app.shows(["sdk4-0"] + payloads("sdk4", 0..<3))
            }
        }

        @Test("offline for a while: the client makes no attempt, and then all data arrives in order, once")
        func airplane() async throws {
            let app = try SDKApp(stack, device: "sdk5-d")
            try await app.running {
                try app.client.bind(userID: "sdk5", sessionID: "s")
                try await push(5, to: "sdk5")
                try await app.shows(payloads("sdk5", 0..<5))
                app.client.networkChanged(to: NetworkPath(isAvailable: false))
                try await eventually("offline", within: .seconds(5)) { app.client.status == .notAvailable }
                let connections = app.events.count { $0 == .status(.connecting) }
                try await push(200, to: "sdk5", from: 5)
                #expect(app.events.count { $0 == .status(.connecting) } == connections)
                app.client.networkChanged(to: NetworkPath(isAvailable: true, name: "wifi"))
                try await app.shows(payloads("sdk5", 0..<205))
            }
        }

        @Test(
            "D19: conversations are listed with unread counts, and read page by page, also on a new device"
        )
        func conversations() async throws {
            for (number, name) in ["case 7", "chat", "case 7", nil, "chat", "case 7"].enumerated() {
                let pushed = try await stack.tool(
                    [
                        "push", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance,
                        "--biz-type", "UCHAT",
                        "--to", "talk", "--id", "talk-\(number)", "\(number)",
                    ] + (name.map { ["--conversation", $0] } ?? []))
                try #require(pushed.status == 0, "\(pushed.output)")
            }
            let app = try SDKApp(stack, device: "talk-d")
            try await app.running {
                try app.client.bind(userID: "talk", sessionID: "s")
                try await app.shows(["0", "1", "2", "3", "4", "5"])
                let listed = try await app.client.conversations(of: "UCHAT")
                #expect(listed.map(\.name) == ["case 7", "chat"] && listed.map(\.last.text) == ["5", "4"])
                #expect(listed.map(\.unread) == [3, 2])
                try await app.client.markRead("case 7", of: "UCHAT", upTo: listed[0].last.oplogID)
                #expect(try await app.client.conversations(of: "UCHAT").map(\.unread) == [0, 2])
            }
            // The gateway returns no conversations of a suspended Sync ID.
            let other = try SDKApp(stack, device: "talk-e")
            try await other.client.suspend("UCHAT")
            try await other.running {
                try other.client.bind(userID: "talk", sessionID: "s")
                try await eventually("caught up", within: .seconds(10)) { other.client.isCaughtUp }
                #expect(try await other.client.conversations(of: "UCHAT").isEmpty)
                try await other.client.resume("UCHAT")
                try await other.shows(["0", "1", "2", "3", "4", "5"])
                let page = try await other.client.history(of: "UCHAT", conversation: "case 7", count: 2)
                #expect(page.oplogs.map(\.text) == ["5", "2"] && page.hasMore)
                let rest = try await other.client.history(
                    of: "UCHAT", conversation: "case 7", before: page.oplogs[1].oplogID)
                #expect(rest.oplogs.map(\.text) == ["0"] && !rest.hasMore)
            }
        }

        @Test(
            "K4: killed again and again while it stores and confirms: every oplog arrives, in order, and none repeats")
        func killed() async throws {
            let times = TestGear.count(10, soak: 50)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<4 {
                    group.addTask { try await killAgainAndAgain("sdk6-\(number)", times: times) }
                }
                let kills = try await group.reduce(0, +)
                #expect(kills == 4 * times)
            }
        }

        /// Kills the device's process each time it has shown a few more oplogs, this number of times.
        private func killAgainAndAgain(_ user: String, times: Int) async throws -> Int {
            let listener = try Listener(stack, user: user, device: "\(user)-d")
            defer { listener.stop() }
            var (pushed, kills) = (0, 0)
            while kills < times {
                let shown = listener.ids("UCHAT").count
                try await push(20, to: user, from: pushed)
                pushed += 20
                let more = Int.random(in: 1...10)
                try await eventually("\(user) continues after \(kills) kills", within: .seconds(30)) {
                    listener.ids("UCHAT").count >= shown + more
                }
                listener.kill()
                kills += 1
            }
            try await eventually("\(user) has all \(pushed)", within: .seconds(60)) {
                Set(listener.ids("UCHAT")).count == pushed
            }
            // The app confirms each oplog before it shows the next. So only the last oplog before a kill may repeat.
            var distinct: [Int64] = []
            for id in listener.ids("UCHAT") where id != distinct.last { distinct.append(id) }
            #expect(
                distinct == distinct.sorted() && distinct.count == pushed, "an oplog repeated, or came out of order")
            return kills
        }

        @Test("K3: data of an unregistered Sync ID waits, and is delivered in order when the app registers the Sync ID")
        func stacked() async throws {
            let app = try SDKApp(stack, device: "sdk7-d", reads: [])
            try await app.running {
                try app.client.bind(userID: "sdk7", sessionID: "s")
                try await push(300, to: "sdk7")
                try await eventually("all are stored", within: .seconds(20)) {
                    try await app.client.channelSummaries().first { $0.bizType == "UCHAT" }?.unconfirmed == 300
                }
                #expect(app.oplogs.isEmpty)
                try await app.reading("UCHAT") { try await app.shows(payloads("sdk7", 0..<300)) }
            }
        }

        @Test("history and summary return the server's data page by page: behind a threshold, and on a new store")
        func history() async throws {
            let count = TestGear.count(1_000, soak: 100_000)
            try await push(count, to: "sdk8", bizType: "TRADE-SECURE")
            for store in 0...1 {
                let app = try SDKApp(stack, device: "sdk8-\(store)")
                try await app.running {
                    try app.client.bind(userID: "sdk8", sessionID: "good")
                    try await app.shows(payloads("sdk8", count - 100..<count))
                    let summary = try await app.client.channelSummaries().first { $0.bizType == "TRADE-SECURE" }
                    #expect(summary?.last?.text == "sdk8-\(count - 1)" && summary?.notReceived != nil)
                    let before = resident()
                    var (next, seen) = (Int64?.none, count)
                    while seen > 0 {
                        let page = try await app.client.history(of: "TRADE-SECURE", before: next, count: 170)
                        #expect(page.isComplete && page.oplogs.count == min(170, seen))
                        #expect(
                            page.oplogs.compactMap(\.text)
                                == payloads("sdk8", seen - page.oplogs.count..<seen).reversed())
                        guard !page.oplogs.isEmpty else { break }
                        seen -= page.oplogs.count
                        next = page.oplogs.last?.oplogID
                        #expect(page.hasMore || seen == 0)
                    }
                    print("a list of \(count) read: resident memory grew by \(resident() - before) MiB")
                    #expect(app.oplogs.count == 100, "a list hands nothing out")
                }
            }
        }

        /// Resident memory of this process in MiB; 0 where it cannot be read.
        private func resident() -> Int {
            let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
            return (fields.flatMap { Int($0[1]) } ?? 0) * 4_096 / 1_048_576
        }

        @Test("a recovery brings all valid oplogs again, marked as recovered, also the confirmed ones")
        func recover() async throws {
            try await push(250, to: "sdk9")
            let app = try SDKApp(stack, device: "sdk9-d")
            try await app.running {
                try app.client.bind(userID: "sdk9", sessionID: "s")
                try await app.shows(payloads("sdk9", 0..<250))
                try await eventually("all are confirmed", within: .seconds(10)) {
                    try await app.client.channelSummaries().first { $0.bizType == "UCHAT" }?.unconfirmed == 0
                }
                try await app.client.recover("UCHAT")
                try await app.shows(payloads("sdk9", 0..<250) + payloads("sdk9", 0..<250))
                #expect(app.oplogs.suffix(250).map(\.isReplay).contains(false) == false)
            }
        }
    }
}
