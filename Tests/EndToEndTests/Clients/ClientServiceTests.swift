import ClientServices
import Foundation
import MobileSync
import TestSupport
import Testing

extension SteadySystem {
    /// Client services over the real client, with a backend that the test plays.
    @Suite("Client services of devices")
    struct ClientServiceTests {
        let stack: Stack
        private let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis, instance: Stack.clientInstance)
        }

        private func push(_ bizType: String, to user: String?, _ payload: String) async throws {
            let answer = await caller.call(bizType, to: user, id: UUID().uuidString, payload: payload)
            #expect(answer?.success == true, "\(answer?.detail ?? "no answer")")
        }

        private func path(_ text: String) throws -> BadgePath { try #require(BadgePath(text)) }

        @Test(
            "global pushes set and change switches, and the last valid ones hold offline after a restart")
        func switches() async throws {
            do {
                let device = try ServiceDevice(stack, device: "service1-a")
                try await device.running {
                    try await push(
                        "MSS_SWITCHES", to: nil,
                        #"{"version": 12, "values": {"newHome": true, "rate": 0.5, "title": "Hello"}}"#)
                    try await push(
                        "MSS_SWITCHES", to: nil, #"{"version": 13, "changes": {"rate": 0.7, "title": null}}"#)
                    try await push("MSS_SWITCHES", to: nil, #"{"version": 13, "values": {}}"#)
                    try await push("MSS_SWITCHES", to: nil, #"{"version": 14, "values": 7}"#)
                    try await push("MSS_SWITCHES", to: nil, #"{"version": 15, "changes": {"last": 1}}"#)
                    try await eventually("all of it is here", within: .seconds(20)) { device.switches.version == 15 }
                }
            }
            let device = try ServiceDevice(stack, device: "service1-a")
            #expect(device.switches.bool("newHome", default: false) && device.switches.integer("last", default: 0) == 1)
            #expect(device.switches.number("rate", default: 0) == 0.7)
            #expect(device.switches.text("title", default: "mine") == "mine", "the switch was removed")
            #expect(device.switches.fetchedAt != nil)
        }

        @Test(
            "badges arrive whole and in parts; an offline tap reaches the tenant, and the answer the other device")
        func badges() async throws {
            let tenant = OperationTenant { call, _ in
                call.question["component"] == "MSS_BADGES"
                    ? OperationTenant.Answer(
                        body: #"{"import": {"version": 9, "changes": [{"path": "home/chat/17", "style": "none"}]}}"#)
                    : OperationTenant.Answer(status: 422)
            }
            try await tenant.serving(stack.operationsPort) {
                let (home, chat) = (try path("home"), try path("home/chat/17"))
                do {
                    let phone = try ServiceDevice(stack, device: "service2-a")
                    try phone.signIn("service2")
                    try await phone.running {
                        try await push(
                            "MSS_BADGES", to: "service2",
                            """
                            {"version": 7, "badges": [
                              {"path": "home/chat/17", "business": "chat", "style": "number", "number": 3, "stamp": 41},
                              {"path": "home/shop", "style": "new"}]}
                            """)
                        try await push(
                            "MSS_BADGES", to: "service2",
                            #"{"version": 8, "changes": [{"path": "home/mail", "style": "number", "number": 4}]}"#)
                        try await eventually("both lists are here", within: .seconds(20)) {
                            phone.badges.count(at: home, mode: .number) == 7
                        }
                    }
                }
                // The user taps offline, and the app ends before the tap is submitted.
                do {
                    let phone = try ServiceDevice(stack, device: "service2-a")
                    try phone.signIn("service2")
                    #expect(try phone.badges.tap(chat) && phone.badges.mark(at: home) == .number(4))
                    #expect(try phone.client.pendingOperations().map(\.name) == ["tap"])
                    try phone.signIn("service2-other")
                    #expect(try phone.client.pendingOperations().isEmpty)
                }
                let phone = try ServiceDevice(stack, device: "service2-a")
                let tablet = try ServiceDevice(stack, device: "service2-b", gateway: 1)
                for device in [phone, tablet] { try device.signIn("service2") }
                try await phone.running {
                    try await tablet.running {
                        try await eventually("the tablet has it from the tenant", within: .seconds(20)) {
                            tablet.badges.version == 9 && tablet.badges.mark(at: chat) == .none
                        }
                        try await eventually("the answer is confirmed", within: .seconds(20)) {
                            try phone.client.pendingOperations().isEmpty && phone.badges.version == 9
                        }
                    }
                }
                #expect(tablet.badges.count(at: home, mode: .number) == 4)
                let call = try #require(tenant.calls.first)
                #expect(tenant.calls.count == 1 && call.question["operation"] == "tap")
                #expect(call.question["userId"] == "service2" && call.question["entityKey"] == "service2")
                #expect(call.body.contains("chat") && call.body.contains(#""stamp":41"#))
            }
        }

        @Test("each user has an own store; the last user's store stays after a sign-out and a restart, also offline")
        func stores() async throws {
            do {
                let device = try ServiceDevice(stack, device: "service3-a")
                for user in ["service3-one", "service3-two"] {
                    try device.signIn(user)
                    try device.stores.user?.set(user, for: "name")
                }
                try device.stores.common.set("all", for: "name")
                device.stores.signOut()
                device.client.unbind()
            }
            let device = try ServiceDevice(stack, device: "service3-a")
            #expect(try device.stores.user?.value("name") == "service3-two" && !device.stores.isSignedIn)
            try await device.running {
                try device.signIn("service3-one")
                try await eventually("the user is bound", within: .seconds(20)) { device.client.isCaughtUp }
                #expect(try device.stores.user?.value("name") == "service3-one")
            }
            #expect(try device.stores.common.value("name") == "all")
        }
    }
}
