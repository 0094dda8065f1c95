import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

// Limits, faults and their order: IngestAPITableTests.
@Suite("Ingest: a push is read into its parts")
struct IngestPushRequestTests {
    private func read(_ body: String, scope: PushScope = .single) throws(PushRefusal) -> PushRequest {
        try PushRequest(scope: scope, instanceID: "w_app", body: Array(body.utf8))
    }

    @Test("every parameter has its place")
    func all() throws {
        let body = #"""
            {"bizType":"orders","linkToken":"u1","thirdMsgId":"t1","payload":"p","osType":"ANDROID",
            "appMinVersion":"1.2","appMaxVersion":"10","validTimeEnd":1767225600000,"unknown":[1]}
            """#
        var push = PushRequest(
            scope: .single, instanceID: InstanceID("w_app"), bizType: BizType("orders"), linkToken: "u1",
            thirdMessageID: ThirdMessageID("t1"), payload: Array("p".utf8), isBinary: false,
            targeting: Targeting(operatingSystem: .android, minimumVersion: "1.2", maximumVersion: "10"),
            validUntil: WallTime(milliseconds: 1_767_225_600_000))
        #expect(try read(body) == push)
        (push.scope, push.linkToken) = (.global, "")
        #expect(try read(body, scope: .global) == push)
    }

    @Test("attributes are an object of texts, numbers and booleans, or the push is refused with the name")
    func attributes() throws {
        func push(_ attributes: String) throws(PushRefusal) -> PushRequest {
            try read(
                #"{"bizType":"b","linkToken":"u","thirdMsgId":"t","payload":"p","attributes":"# + attributes + "}")
        }
        let found = try push(#"{"region":"nörd","price":1.50,"urgent":true,"none":null}"#).attributes
        #expect(
            found
                == SubscriptionValues([
                    "region": .text("nörd"), "price": .number(1.5), "urgent": .boolean(true),
                ]))
        #expect(try push("null").attributes.isEmpty && push("{}").attributes.isEmpty)
        for wrong in ["1", "true", "\"x\"", "[1]", "{\"a\":{}}", "{\"a\":[1]}", "{\"a\":1e999}"] {
            #expect {
                try push(wrong)
            } throws: { error in
                guard let refusal = error as? PushRefusal else { return false }
                return refusal.code == .argsIsNull && refusal.detail.hasPrefix("attributes")
            }
        }
    }

    @Test("D19: a conversation has 1 to 100 characters without NUL; empty and null count as missing")
    func conversation() throws {
        func push(_ conversation: String) throws(PushRefusal) -> PushRequest {
            try read(
                #"{"bizType":"b","linkToken":"u","thirdMsgId":"t","payload":"p","conversation":"# + conversation + "}")
        }
        let longest = String(repeating: "ä", count: 100)
        #expect(try push("\"\(longest)\"").conversation == longest)
        #expect(try push("null").conversation.isEmpty && push("\"\"").conversation.isEmpty)
        for wrong in ["1", "{}", "\"\(longest)c\"", #""a\u0000""#] {
            #expect {
                try push(wrong)
            } throws: { error in
                guard let refusal = error as? PushRefusal else { return false }
                return refusal.code == .argsIsNull && refusal.detail.hasPrefix("conversation")
            }
        }
    }

    @Test("a binary payload is stored as the bytes that it stands for")
    func binary() throws {
        let push = try read(#"{"bizType":"orders","linkToken":"u1","thirdMsgId":"t1","binaryPayload":"AP8="}"#)
        #expect(push.isBinary && push.payload == [0, 255] && push.targeting == .everyone && push.validUntil == nil)
    }
}
