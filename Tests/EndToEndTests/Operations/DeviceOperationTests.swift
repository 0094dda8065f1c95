import Foundation
import MobileSync
import TestSupport
import Testing

extension SecondRunningSystem {
    /// Device operations, from the app to the tenant and back, with a tenant that the test plays.
    @Suite("Operations of devices")
    struct DeviceOperationTests {
        private typealias Answer = OperationTenant.Answer

        let stack: Stack

        init() throws { stack = try Stack.running }

        private func ids(_ prefix: String, _ count: Int) -> [String] {
            (0..<count).map { "\(prefix)-\($0)-\(UUID().uuidString.prefix(8))" }
        }

        @Test("accepted: the result reaches the device, the new state the user's other devices; children are included")
        func accepted() async throws {
            let tenant = OperationTenant { call, _ in
                Answer(body: #"{"message": "well done", "import": {"entities": [{"key": "1", "n": 1.50}]}}"#)
            }
            try await tenant.serving(stack.operationsPort) {
                let phone = try OperationApp(stack, device: "op1-a", user: "op1")
                let tablet = try OperationApp(stack, device: "op1-b", user: "op1", gateway: 1)
                try await phone.running {
                    try await tablet.running {
                        let id = SyncOperation.makeID()
                        try phone.client.submit([
                            SyncOperation(
                                id: id, component: "ORDER", key: "1", name: "create", body: Array(#"{"a":[1]}"#.utf8),
                                children: [SyncOperation(id: "c1", component: "LINE", key: "9", name: "create")])
                        ])
                        try await phone.hasResults(of: [id])
                        let result = try phone.result(of: id)
                        #expect(result.isAccepted && result.code == 200 && result.level == "INFO")
                        #expect(result.message == "well done" && result.component == "ORDER" && result.key == "1")
                        #expect(
                            result.imported.map { String(decoding: $0, as: UTF8.self) }
                                == #"{"entities":[{"key":"1","n":1.50}]}"#)
                        let state = #"{"entities":[{"key":"1","n":1.50}]}"#
                        for app in [phone, tablet] {
                            try await eventually("the new state is there", within: .seconds(10)) {
                                app.oplogs.map(\.text) == [state]
                            }
                        }
                        #expect(tablet.results.isEmpty && phone.oplogs.map(\.bizType) == ["ORDER"])
                        #expect(try phone.client.pendingOperations().isEmpty)
                        let call = try #require(tenant.calls(of: id).first)
                        #expect(call.body == #"{"a":[1]}"# && call.children == ["c1"])
                        #expect(call.question["userId"] == "op1" && call.question["sessionId"] == "session")
                        #expect(call.key == "\(Stack.operationInstance)/op1-a/\(id)")
                    }
                }
            }
        }

        @Test("a call returns the tenant's answer, which nobody else gets")
        func calls() async throws {
            let tenant = OperationTenant { _, number in
                number < 2 ? Answer(status: 503) : Answer(body: #"{"import": {"price": 12.50}}"#)
            }
            try await tenant.serving(stack.operationsPort) {
                let phone = try OperationApp(stack, device: "op1-call", user: "op1-caller")
                try await phone.running {
                    let question = SyncOperation(component: "PRICE", key: "17", name: "read")
                    let answer = try await SyncCalls(phone.client).call(question)
                    #expect(answer.imported.map { String(decoding: $0, as: UTF8.self) } == #"{"price":12.50}"#)
                    #expect(tenant.calls(of: question.id).count == 2)
                    #expect(phone.results.isEmpty && phone.oplogs.isEmpty)
                }
            }
        }

        @Test("refused: the device gets the tenant's code and message; a 503 is retried; bytes are sent as Base64")
        func refusedAndRetried() async throws {
            let tenant = OperationTenant { call, number in
                switch call.question["operation"] {
                case "refuse": Answer(status: 409, body: #"{"code": 423, "message": "it is locked"}"#)
                case "later": number < 3 ? Answer(status: 503) : Answer()
                default: Answer()
                }
            }
            try await tenant.serving(stack.operationsPort) {
                let app = try OperationApp(stack, device: "op2-a", user: "op2")
                let names = ids("op2", 3)
                try await app.running {
                    try app.submit([names[0]], key: "1", name: "refuse")
                    try app.submit([names[1]], key: "2", name: "later")
                    try app.client.submit([
                        SyncOperation(
                            id: names[2], component: "ORDER", key: "3", name: "x", body: [0xFF, 0x00])
                    ])
                    try await app.hasResults(of: names)
                }
                let refused = try app.result(of: names[0])
                #expect(!refused.isAccepted && refused.code == 423 && refused.message == "it is locked")
                #expect(refused.level == "ERROR")
                #expect(try app.result(of: names[1]).isAccepted)
                #expect(tenant.calls(of: names[1]).count == 3)
                #expect(tenant.calls(of: names[2]).map(\.body) == ["/wA="])
            }
        }

        @Test("dead: the device gets 504, later operations continue; an operator's retry brings another result")
        func deadLetter() async throws {
            let isWell = Flag()
            let tenant = OperationTenant { call, _ in
                call.question["operation"] == "bad" && !isWell.isSet ? Answer(status: 500) : Answer()
            }
            try await tenant.serving(stack.operationsPort) {
                let app = try OperationApp(stack, device: "op3-a", user: "op3")
                let names = ids("op3", 2)
                try await app.running {
                    try app.submit([names[0]], key: "1", name: "bad")
                    try app.submit([names[1]], key: "1")
                    try await app.hasResults(of: names)
                    let (dead, behind) = (try app.result(of: names[0]), try app.result(of: names[1]))
                    #expect(dead.code == 504 && behind.isAccepted)
                    #expect(tenant.done(to: "ORDER/1") == [names[1]])
                    let list = try await stack.tool([
                        "operations", "list", "--instance", Stack.operationInstance, "--state", "dead", "--device",
                        "op3-a",
                    ])
                    #expect(list.status == 0 && list.output.contains(names[0]), "\(list.output)")
                    isWell.set()
                    let retry = try await stack.tool([
                        "operations", "retry", "--instance", Stack.operationInstance, "--device", "op3-a", "--id",
                        names[0],
                    ])
                    #expect(retry.status == 0, "\(retry.output)")
                    try await eventually("another result", within: .seconds(20)) {
                        app.results.last?.operationID == names[0] && app.results.last?.isAccepted == true
                    }
                }
                #expect(app.results.map(\.operationID) == [names[0], names[1], names[0]])
                let days = try await stack.tool(["operations", "days", "--instance", Stack.operationInstance])
                let today = try #require(days.output.split(separator: "\n").first { $0.contains("\tORDER\t") })
                #expect(
                    days.status == 0 && !today.contains("accepted 0,") && !today.contains("dead 0"), "\(days.output)")
                #expect(tenant.done(to: "ORDER/1") == [names[1], names[0]])
            }
        }

        @Test("a slow tenant: order holds for each entity, also over two devices; other entities do not wait")
        func order() async throws {
            let tenant = OperationTenant { _, _ in Answer(delay: .milliseconds(.random(in: 1...60))) }
            try await tenant.serving(stack.operationsPort) {
                let apps = try [0, 1].map { number in
                    try OperationApp(stack, device: "op4-\(number)", user: "op4", gateway: number)
                }
                let names = apps.indices.map { ids("op4-\($0)", 60) }
                try await apps[0].running {
                    try await apps[1].running {
                        for (app, names) in zip(apps, names) {
                            for (number, id) in names.enumerated() { try app.submit([id], key: "\(number % 4)") }
                        }
                        for (app, names) in zip(apps, names) { try await app.hasResults(of: names) }
                    }
                }
                #expect(tenant.overlaps.isEmpty)
                for key in 0..<4 {
                    let done = tenant.done(to: "ORDER/\(key)")
                    #expect(done.count == 30)
                    for names in names {
                        let mine = names.enumerated().filter { $0.offset % 4 == key }.map(\.element)
                        #expect(done.filter { mine.contains($0) } == mine)
                    }
                }
                for (app, names) in zip(apps, names) {
                    for key in 0..<4 {
                        let mine = names.enumerated().filter { $0.offset % 4 == key }.map(\.element)
                        #expect(app.results.map(\.operationID).filter { mine.contains($0) } == mine)
                    }
                }
            }
        }

        @Test("offline: operations are sent later; a result waits for its device; an unconfirmed result is given again")
        func offline() async throws {
            let tenant = OperationTenant { _, _ in Answer(delay: .milliseconds(700)) }
            try await tenant.serving(stack.operationsPort) {
                let names = ids("op5", 2)
                do {
                    let app = try OperationApp(stack, device: "op5-a", user: "op5")
                    try app.submit(names, key: "1")
                    #expect(try app.client.pendingOperations().map(\.id) == names)
                    #expect(try app.client.cancelOperations([names[1]]) == [names[1]])
                }
                let first = try OperationApp(stack, device: "op5-a", user: "op5", confirmsResults: false)
                try await first.running {
                    try await eventually("the tenant is called", within: .seconds(20)) {
                        !tenant.calls(of: names[0]).isEmpty
                    }
                }
                // The device is offline when the result is ready.
                try await eventually("it is done", within: .seconds(10)) { tenant.done(to: "ORDER/1") == [names[0]] }
                for turn in 0..<2 {
                    let app = try OperationApp(stack, device: "op5-a", user: "op5", confirmsResults: turn == 1)
                    try await app.running { try await app.hasResults(of: [names[0]]) }
                    #expect(app.results.count == 1)
                }
                let last = try OperationApp(stack, device: "op5-a", user: "op5")
                try last.submit([names[0]], key: "1")
                #expect(try last.client.pendingOperations().isEmpty)
                try await last.running {
                    let marker = ids("op5-marker", 1)
                    try last.submit(marker, key: "2")
                    try await last.hasResults(of: marker)
                    #expect(last.results.map(\.operationID) == marker)
                }
                #expect(tenant.calls(of: names[0]).count == 1 && tenant.calls(of: names[1]).isEmpty)
            }
        }

        @Test(
            "relays and gateways are killed: every operation is executed exactly once, in order, with its result")
        func killed() async throws {
            let tenant = OperationTenant { _, _ in Answer(delay: .milliseconds(.random(in: 0...30))) }
            try await tenant.serving(stack.operationsPort) {
                let apps = try (0..<4).map { number in
                    try OperationApp(stack, device: "op6-\(number)", user: "op6-\(number)", gateway: number % 2)
                }
                let names = apps.indices.map { ids("op6-\($0)", 100) }
                try await Self.running(apps[...]) {
                    for round in 0..<4 {
                        for (number, app) in apps.enumerated() {
                            try app.submit(Array(names[number][round * 25..<round * 25 + 25]), key: "op6-\(number)")
                        }
                        try await eventually("some are done", within: .seconds(60)) {
                            tenant.calls.count > round * 40 + 20
                        }
                        try stack.process("relay-\(round % 2)").kill()
                        if round == 2 { try stack.process("gateway-0").kill() }
                    }
                    for (app, names) in zip(apps, names) { try await app.hasResults(of: names, within: .seconds(120)) }
                }
                for (number, app) in apps.enumerated() {
                    #expect(tenant.done(to: "ORDER/op6-\(number)") == names[number])
                    #expect(app.results.map(\.operationID) == names[number])
                    #expect(app.results.allSatisfy { $0.isAccepted })
                }
            }
        }

        /// Runs all apps while the body runs.
        private static func running(_ apps: ArraySlice<OperationApp>, _ body: () async throws -> Void) async throws {
            guard let first = apps.first else { return try await body() }
            try await first.running { try await running(apps.dropFirst(), body) }
        }

        @Test("no endpoint: a clear refusal; an invalid session keeps the operations until the next sign-in")
        func noEndpoint() async throws {
            let app = try OperationApp(stack, device: "op7-a", user: "op7", instance: Stack.globalInstance)
            let names = ids("op7", 2)
            try await app.running {
                try app.submit([names[0]], key: "1")
                try await app.hasResults(of: [names[0]])
            }
            #expect(try app.result(of: names[0]).code == 404)
            #expect(try app.result(of: names[0]).message.contains("--relay-url"))
            #expect(throws: SyncError.self) {
                try app.client.submit([SyncOperation(component: "A B", key: "1", name: "x")])
            }
            let demo = try OperationApp(
                stack, device: "op7-b", user: "op7", session: "bad-session", instance: Stack.instance)
            try await demo.running {
                let events = demo.client.events
                for await event in events {
                    if case .sessionInvalid = event { break }
                }
                try demo.submit([names[1]], key: "1")
                try demo.client.bind(userID: "op7", sessionID: "good-session")
                try await demo.hasResults(of: [names[1]])
                #expect(try demo.result(of: names[1]).isAccepted)
            }
        }

        @Test("another user signs in: the first user's operations and results wait until that user signs in again")
        func userSwitch() async throws {
            let tenant = OperationTenant()
            try await tenant.serving(stack.operationsPort) {
                let app = try OperationApp(stack, device: "op8-a", user: "op8-one")
                let names = ids("op8", 2)
                try app.submit([names[0]], key: "1")
                try app.client.bind(userID: "op8-two", sessionID: "s")
                #expect(try app.client.pendingOperations().isEmpty)
                try app.submit([names[1]], key: "1")
                try await app.running {
                    try await app.hasResults(of: [names[1]])
                    #expect(tenant.calls(of: names[0]).isEmpty)
                    try app.client.bind(userID: "op8-one", sessionID: "s")
                    try await app.hasResults(of: [names[0]])
                }
                #expect(tenant.calls(of: names[0]).map { $0.question["userId"] } == ["op8-one"])
                #expect(tenant.calls(of: names[1]).map { $0.question["userId"] } == ["op8-two"])
            }
        }

        @Test("mssctl submit is a device that sends one operation and prints its result")
        func tool() async throws {
            let outcome = try await stack.tool([
                "submit", "--instance", Stack.instance, "--device", "op9", "--user", "op9", "--component", "ORDER",
                "--key", "1", "--body", #"{"a":1}"#, "--port", "\(stack.gateways[0])", "--ca",
                stack.certificateAuthority, "--store", stack.folder.appending(path: "op9.sqlite").path,
            ])
            #expect(outcome.status == 0 && outcome.output.contains("accepted\tcode 200 done"), "\(outcome.output)")
        }
    }
}
