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

    @Test("a binary payload is stored as the bytes that it stands for")
    func binary() throws {
        let push = try read(#"{"bizType":"orders","linkToken":"u1","thirdMsgId":"t1","binaryPayload":"AP8="}"#)
        #expect(push.isBinary && push.payload == [0, 255] && push.targeting == .everyone && push.validUntil == nil)
    }
}
