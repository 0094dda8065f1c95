import AsyncHTTPClient
import Foundation
import MobileSync
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

extension SteadySystem {
    /// Subscription parameters, from the configuration to the app.
    @Suite("Subscription parameters")
    struct ParameterTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        /// Creates a configuration whose oplogs have the attributes region and price.
        private func configure(_ bizType: String, _ more: [String] = []) async throws {
            let made = try await stack.tool(
                [
                    "config", "create", bizType, "--instance", Stack.instance, "--description", "filtered", "--repush",
                    "all", "--attributes", "region text, price number", "--parameters",
                    "region text = \"north\", max number", "--filter",
                    "region == $region and (price <= $max or not price > 100)",
                ] + more)
            try #require(made.status == 0, "\(made.output)")
        }

        /// Pushes with attributes, given as JSON. Returns the answer's code and detail.
        @discardableResult
        private func push(
            _ bizType: String, to target: String?, _ payload: String, _ attributes: String
        ) async throws -> Caller.Answer {
            let scope = target == nil ? "global" : "single"
            let link = target.map { "\"linkToken\":\"\($0)\"," } ?? ""
            var request = HTTPClientRequest(
                url: "http://127.0.0.1:\(stack.apis[0])/webapi/sync/\(scope)?instanceId=\(Stack.instance)")
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            let id = "\(bizType)-\(payload)"
            let body =
                "{\"bizType\":\"\(bizType)\",\(link)\"thirdMsgId\":\"\(id)\",\"payload\":\"\(payload)\","
                + "\"attributes\":\(attributes)}"
            request.body = .bytes(ByteBuffer(string: body))
            let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
            let bytes = try await response.body.collect(upTo: 65_536)
            return try JSONDecoder().decode(Caller.Answer.self, from: Data(bytes.readableBytesView))
        }

        private func push(_ bizType: String, to target: String?, _ payload: String, region: String) async throws {
            try await push(bizType, to: target, payload, "{\"region\":\"\(region)\",\"price\":1}")
        }

        private func app(_ device: String, _ user: String?, gateway: Int = 0) throws -> OperationApp {
            try OperationApp(stack, device: device, user: user, gateway: gateway, instance: Stack.instance)
        }

        /// Waits until the app has received exactly these payloads of a Sync ID, in any order, each once.
        private func has(_ app: OperationApp, _ bizType: String, _ payloads: [String]) async throws {
            func given() -> [String] { app.oplogs.filter { $0.bizType == bizType }.compactMap(\.text) }
            try await eventually("\(bizType): \(payloads), there is \(given())", within: .seconds(20)) {
                given().count >= payloads.count
            }
            #expect(given().sorted() == payloads.sorted())
        }

        @Test("a device gets matching oplogs; a changed value brings matching older data too, each oplog once; A, B, A")
        func changes() async throws {
            let bizType = "FILTERED-1"
            try await configure(bizType)
            for (payload, region) in [("n1", "north"), ("s1", "south"), ("n2", "north"), ("w1", "west")] {
                try await push(bizType, to: "fp1", payload, region: region)
            }
            try await push(bizType, to: "fp1", "n-dear", "{\"region\":\"north\",\"price\":200}")
            try await push(bizType, to: "fp1", "plain", "{}")
            let app = try app("fp1-d", "fp1")
            try await app.running {
                try await has(app, bizType, ["n1", "n2"])
                try await app.client.setParameter("region", of: bizType, to: .text("south"))
                try await has(app, bizType, ["n1", "n2", "s1"])
                try await push(bizType, to: "fp1", "n3", region: "north")
                try await push(bizType, to: "fp1", "s2", region: "south")
                try await has(app, bizType, ["n1", "n2", "s1", "s2"])
                // The first value again: only oplogs from the time between arrive, and none repeats.
                try await app.client.setParameter("region", of: bizType, to: .text("north"))
                try await has(app, bizType, ["n1", "n2", "s1", "s2", "n3"])
                try await app.client.setParameter("max", of: bizType, to: .number(500))
                try await has(app, bizType, ["n1", "n2", "s1", "s2", "n3", "n-dear"])
                try await app.client.setParameter("region", of: bizType, to: .text("south"))
                try await app.client.setParameter("region", of: bizType, to: .text("north"))
                try await push(bizType, to: "fp1", "n4", region: "north")
                try await has(app, bizType, ["n1", "n2", "s1", "s2", "n3", "n-dear", "n4"])
                #expect(app.oplogs.allSatisfy { !$0.isReplay })
            }
        }

        @Test(
            "a session value ends with the client, a client value survives restarts; both override the default")
        func kinds() async throws {
            let bizType = "FILTERED-2"
            try await configure(bizType)
            for region in ["north", "south", "west", "east"] {
                try await push(bizType, to: "fp2", region, region: region)
            }
            var app = try app("fp2-d", "fp2")
            try await app.client.setParameter("region", of: bizType, to: .text("south"))
            try await app.client.setParameter("region", of: bizType, to: .text("west"), kind: .session)
            try await app.running { try await has(app, bizType, ["west"]) }
            #expect(try await app.client.parameter("region", of: bizType) == .text("west"))
            app = try self.app("fp2-d", "fp2")
            try await app.running { try await has(app, bizType, ["south"]) }
            #expect(try await app.client.parameters().map(\.kind) == [.client])
            // Another user of the device has none of these values; the default applies.
            try app.client.bind(userID: "fp2-other", sessionID: "session")
            #expect(try await app.client.parameters().isEmpty)
            try app.client.bind(userID: "fp2", sessionID: "session")
            try await app.client.setParameter("region", of: bizType, to: nil)
            try await app.running { try await has(app, bizType, ["south", "north"]) }
        }

        @Test(
            "a server value, set by one device, applies to the user's other devices at once, over gateways and restarts"
        )
        func server() async throws {
            let bizType = "FILTERED-3"
            try await configure(bizType)
            for region in ["north", "south"] { try await push(bizType, to: "fp3", region, region: region) }
            let (phone, tablet) = (try app("fp3-a", "fp3"), try app("fp3-b", "fp3", gateway: 1))
            try await phone.running {
                try await tablet.running {
                    try await has(phone, bizType, ["north"])
                    try await has(tablet, bizType, ["north"])
                    try await phone.client.setParameter("region", of: bizType, to: .text("south"), kind: .server)
                    try await has(phone, bizType, ["north", "south"])
                    try await has(tablet, bizType, ["north", "south"])
                    try await eventually("the other device knows the value", within: .seconds(10)) {
                        try await tablet.client.parameter("region", of: bizType) == .text("south")
                    }
                    try await eventually("the server has confirmed the value", within: .seconds(10)) {
                        try await phone.client.parameters().allSatisfy { !$0.isPending }
                    }
                    try await push(bizType, to: "fp3", "south-2", region: "south")
                    try await push(bizType, to: "fp3", "north-2", region: "north")
                    try await push(bizType, to: "fp3", "south-3", region: "south")
                    for app in [phone, tablet] {
                        try await has(app, bizType, ["north", "south", "south-2", "south-3"])
                    }
                }
            }
            // A new device of the user applies the value from its first oplog.
            let third = try app("fp3-c", "fp3")
            try await third.running { try await has(third, bizType, ["south", "south-2", "south-3"]) }
        }

        @Test("a filter that is added, changed and removed while devices are connected loses and repeats nothing")
        func configuration() async throws {
            let bizType = "FILTERED-4"
            let made = try await stack.tool([
                "config", "create", bizType, "--instance", Stack.instance, "--description", "filtered later",
                "--repush", "all", "--attributes", "region text",
            ])
            try #require(made.status == 0, "\(made.output)")
            func set(_ filter: String) async throws {
                let set = try await stack.tool([
                    "config", "set", bizType, "--instance", Stack.instance, "--filter", filter,
                ])
                try #require(set.status == 0, "\(set.output)")
            }
            func push(_ payload: String, _ region: String) async throws {
                try await self.push(bizType, to: "fp4", payload, "{\"region\":\"\(region)\"}")
            }
            let app = try app("fp4-d", "fp4")
            try await app.running {
                try await push("1", "south")
                try await has(app, bizType, ["1"])
                try await set(#"region == "north""#)
                // The device's session applies the filter a moment after the gateway.
                var given = ["1"]
                var pushed = given
                repeat {
                    let number = pushed.count
                    try await push("s\(number)", "south")
                    try await push("n\(number)", "north")
                    pushed += ["s\(number)", "n\(number)"]
                    try await eventually("the northern one is there", within: .seconds(20)) {
                        app.oplogs.contains { $0.text == "n\(number)" }
                    }
                    given = app.oplogs.filter { $0.bizType == bizType }.compactMap(\.text)
                } while given.count == pushed.count && pushed.count < 1_000
                #expect(given.count == pushed.count - 1)
                try await set(#"region in ("north", "south")"#)
                try await has(app, bizType, pushed)
                try await set("")
                try await push("west", "west")
                try await has(app, bizType, pushed + ["west"])
            }
        }

        @Test("the filter also applies to a single-device user, a device and a global push; a new store has no history")
        func receivers() async throws {
            try await configure("FILTERED-5", ["--no-multi-device"])
            try await configure("FILTERED-6", ["--target", "device", "--no-multi-device"])
            try await configure("GLOBAL-FILTERED", ["--scope", "global", "--immediate"])
            for region in ["north", "south"] {
                try await push("FILTERED-5", to: "fp5", region, region: region)
                try await push("FILTERED-6", to: "fp5-d", region, region: region)
                try await push("GLOBAL-FILTERED", to: nil, region, region: region)
            }
            let app = try app("fp5-d", "fp5")
            try await app.running {
                for bizType in ["FILTERED-5", "FILTERED-6", "GLOBAL-FILTERED"] {
                    try await has(app, bizType, ["north"])
                    try await app.client.setParameter("region", of: bizType, to: .text("south"))
                    try await has(app, bizType, ["north", "south"])
                    try await app.client.setParameter("region", of: bizType, to: .text("north"))
                }
                try await push("GLOBAL-FILTERED", to: nil, "north-2", region: "north")
                // Now the change is in force.
                try await has(app, "GLOBAL-FILTERED", ["north", "south", "north-2"])
                try await push("GLOBAL-FILTERED", to: nil, "south-2", region: "south")
                try await push("GLOBAL-FILTERED", to: nil, "north-3", region: "north")
                try await has(app, "GLOBAL-FILTERED", ["north", "south", "north-2", "north-3"])
            }
        }

        @Test("invalid filters, attributes and values are refused with the reason")
        func refusals() async throws {
            func refused(_ arguments: [String]) async throws -> String {
                let outcome = try await stack.tool(
                    ["config", "create", "FILTERED-8", "--instance", Stack.instance, "--description", "x"] + arguments)
                #expect(outcome.status != 0)
                return outcome.output
            }
            #expect(
                try await refused(["--filter", "region == 1"]).contains("character 1: there is no attribute region"))
            let attributes = ["--attributes", "region text"]
            #expect(try await refused(attributes + ["--filter", "region =="]).contains("filter, character"))
            #expect(try await refused(attributes + ["--filter", "region < 1"]).contains("is not a text"))
            #expect(try await refused(["--parameters", "p text = 1"]).contains("parameters, character"))
            try await configure("FILTERED-9")
            for wrong in ["{\"colour\":\"red\"}", "{\"price\":\"1\"}", "{\"region\":{}}", "[1]", "\"x\""] {
                let answer = try await push(
                    "FILTERED-9", to: "fp9", "x\(wrong.utf8.count)", wrong.replacing("'", with: "\""))
                #expect(!answer.success && answer.msg == "ARGS_IS_NULL", "\(wrong): \(answer)")
                #expect(answer.detail?.contains("attributes") == true, "\(answer)")
            }
            let device = try SDKApp(stack, device: "fp9-d", reads: [])
            try device.client.bind(userID: "fp9", sessionID: "session")
            try await device.running {
                try await device.client.setParameter("colour", of: "FILTERED-9", to: .text("x"), kind: .server)
                try await eventually("the app is notified of the refusal", within: .seconds(10)) {
                    device.events.contains {
                        if case .parameterRefused(let reason) = $0 { reason.contains("colour") } else { false }
                    }
                }
                #expect(try await device.client.parameters().isEmpty)
            }
            await #expect(throws: SyncError.self) {
                try await device.client.setParameter("region", of: "FILTERED-9", to: .number(.infinity))
            }
        }
    }
}
