import SyncModel
import Testing

@testable import IngestAPI

@Suite("Ingest: parameters, their limits and the order of the checks")
struct IngestPushRequestTests {
    private static let good = [
        "bizType": #""orders""#, "linkToken": #""u1""#, "thirdMsgId": #""t1""#, "payload": #""p""#,
    ]

    /// The push read from the good members with some replaced; an empty text takes the member out.
    private func read(
        _ changes: [String: String] = [:], scope: PushScope = .single, instanceID: String? = "w_app"
    ) throws(PushRefusal) -> PushRequest {
        let members = Self.good.merging(changes) { $1 }.filter { !$0.value.isEmpty }
        let body = "{" + members.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
        return try PushRequest(scope: scope, instanceID: instanceID, body: Array(body.utf8))
    }

    private func code(_ changes: [String: String], scope: PushScope = .single) -> ResultCode? {
        do throws(PushRefusal) {
            _ = try read(changes, scope: scope)
            return nil
        } catch {
            #expect(error.detail.hasSuffix("."), "a detail is a sentence")
            return error.code
        }
    }

    private static func text(_ units: Int, of character: String = "a") -> String {
        "\"" + String(repeating: character, count: units / character.utf16.count) + "\""
    }

    @Test("a good push is read into its parts")
    func good() throws {
        let push = try read([
            "osType": #""ANDROID""#, "appMinVersion": #""1.2""#, "appMaxVersion": #""10""#,
            "validTimeEnd": "1767225600000", "unknown": "[1]",
        ])
        #expect(
            push
                == PushRequest(
                    scope: .single, instanceID: InstanceID("w_app"), bizType: BizType("orders"), linkToken: "u1",
                    thirdMessageID: ThirdMessageID("t1"), payload: Array("p".utf8), isBinary: false,
                    targeting: Targeting(operatingSystem: .android, minimumVersion: "1.2", maximumVersion: "10"),
                    validUntil: WallTime(milliseconds: 1_767_225_600_000)))
    }

    @Test(
        "a limit is inclusive and counts UTF-16 units",
        arguments: [
            ("bizType", 30, ResultCode.bizNotOnline), ("linkToken", 100, .argsIsNull),
            ("thirdMsgId", 100, .thirdMessageIDLong), ("payload", 4_096, .payloadLong),
        ])
    func limits(name: String, limit: Int, expected: ResultCode) {
        for character in ["a", "é", "😀"] {
            #expect(code([name: Self.text(limit - 2, of: character)]) == nil)
            #expect(code([name: Self.text(limit, of: character)]) == nil)
            #expect(code([name: Self.text(limit + 2, of: character)]) == expected)
        }
        #expect(code([name: Self.text(limit + 1)]) == expected)
    }

    @Test("the other limits are inclusive too")
    func otherLimits() {
        #expect(code(["appMinVersion": #""1.2345678901234567.8""#]) == nil)
        #expect(code(["appMinVersion": #""1.23456789012345678.9""#]) == .argsIsNull)
        #expect(code(["appMaxVersion": #""12345678901234567890""#]) == nil)
        #expect(code(["appMaxVersion": #""123456789012345678901""#]) == .argsIsNull)
        #expect(code(["osType": Self.text(11)]) == .argsIsNull)
        #expect(code(["payload": "", "binaryPayload": Self.text(4_096, of: "AAAA")]) == nil)
        #expect(code(["payload": "", "binaryPayload": Self.text(4_100, of: "AAAA")]) == .payloadLong)
    }

    @Test(
        "absent, null and empty count as missing",
        arguments: [
            ("bizType", ResultCode.argsIsNull), ("linkToken", .argsIsNull), ("thirdMsgId", .thirdMessageIDIsNull),
            ("payload", .argsIsNull),
        ])
    func missing(name: String, expected: ResultCode) {
        for value in ["", "null", #""""#] { #expect(code([name: value]) == expected, "\(value)") }
    }

    @Test("an optional parameter that is null or empty restricts nothing")
    func optionalMissing() throws {
        for value in ["null", #""""#] {
            let push = try read([
                "osType": value, "appMinVersion": value, "appMaxVersion": value, "validTimeEnd": value,
            ])
            #expect(push.targeting == .everyone && push.validUntil == nil)
        }
    }

    @Test(
        "a wrong type is refused",
        arguments: [
            ("bizType", "1"), ("linkToken", "1"), ("thirdMsgId", "1"), ("thirdMsgId", "[]"), ("linkToken", "true"),
            ("payload", "1"), ("payload", "true"), ("osType", "1"), ("osType", #""windows""#), ("osType", #""iOS ""#),
            ("appMinVersion", "1"), ("appMinVersion", #""1.x""#), ("appMinVersion", #""1..2""#),
            ("appMaxVersion", #""v1""#), ("appMaxVersion", "{}"), ("validTimeEnd", "true"), ("validTimeEnd", "1.5"),
            ("validTimeEnd", "176722560000"), ("validTimeEnd", "17672256000000"), ("validTimeEnd", "-767225600000"),
            ("validTimeEnd", "1.767225600e12"), ("validTimeEnd", #""17672256000x0""#), ("validTimeEnd", "[]"),
        ])
    func wrongType(name: String, value: String) {
        #expect(code([name: value]) == .argsIsNull)
    }

    @Test("validTimeEnd is read as number and as string, in the past too")
    func validTimeEnd() throws {
        #expect(try read(["validTimeEnd": #""1000000000000""#]).validUntil == WallTime(milliseconds: 1_000_000_000_000))
        #expect(try read(["validTimeEnd": "9999999999999"]).validUntil == WallTime(milliseconds: 9_999_999_999_999))
    }

    @Test("NUL is refused in an id and kept in a payload")
    func nul() throws {
        for name in ["bizType", "linkToken", "thirdMsgId"] { #expect(code([name: #""a\u0000b""#]) == .argsIsNull) }
        #expect(throws: PushRefusal.self) { try read(instanceID: "w\0app") }
        #expect(try read(["payload": #""a\u0000b""#]).payload == [97, 0, 98])
    }

    @Test("a payload as object or array is stored as its text; it wins over binaryPayload, which is not looked at")
    func payloads() throws {
        #expect(try read(["payload": "{ \"b\": 1.0, \"a\": [ ] }"]).payload == Array(#"{"b":1.0,"a":[]}"#.utf8))
        #expect(try read(["payload": "[ ]"]).payload == Array("[]".utf8))
        #expect(try read(["binaryPayload": "12"]).isBinary == false)
        #expect(try read(["binaryPayload": Self.text(9_000)]).payload == Array("p".utf8))
        let binary = try read(["payload": "null", "binaryPayload": #""AP8=""#])
        #expect(binary.isBinary && binary.payload == [0, 255])
        for bad in ["12", #""AP8""#, #""A P8=""#, "{}"] {
            #expect(code(["payload": "", "binaryPayload": bad]) == .argsIsNull, "\(bad)")
        }
        #expect(code(["payload": "[\(Self.text(4_092))]"]) == nil)
        #expect(code(["payload": "[\(Self.text(4_093))]"]) == .payloadLong)
    }

    @Test("a range that no version meets is refused, an open or single one is not")
    func versions() {
        #expect(code(["appMinVersion": #""2""#, "appMaxVersion": #""1.9""#]) == .argsIsNull)
        #expect(code(["appMinVersion": #""2""#, "appMaxVersion": #""2.0""#]) == nil)
        #expect(code(["appMinVersion": #""2""#]) == nil)
        #expect(code(["appMaxVersion": #""2""#]) == nil)
    }

    @Test("global ignores linkToken, whatever it is")
    func global() throws {
        for value in ["", "1", Self.text(101), #""a\u0000""#] {
            #expect(try read(["linkToken": value], scope: .global).linkToken == "")
        }
    }

    @Test("no instanceId and unreadable JSON come before everything else")
    func first() {
        for instanceID in [nil, ""] {
            #expect(throws: PushRefusal.self) { try read(["thirdMsgId": ""], instanceID: instanceID) }
            do throws(PushRefusal) { _ = try read(["thirdMsgId": ""], instanceID: instanceID) } catch {
                #expect(error.code == .argsIsNull)
            }
        }
        for body in ["", "[]", "{\"thirdMsgId\":\"\",\"thirdMsgId\":\"\"}"] {
            do throws(PushRefusal) {
                _ = try PushRequest(scope: .single, instanceID: "w_app", body: Array(body.utf8))
                Issue.record("read \(body)")
            } catch {
                #expect(error.code == .argsIsNull)
            }
        }
    }

    @Test("of two faults the earlier check answers")
    func order() {
        let long = Self.text(101)
        let longPayload = Self.text(4_097)
        let pairs: [([String: String], ResultCode)] = [
            (["thirdMsgId": "", "bizType": ""], .thirdMessageIDIsNull),
            (["thirdMsgId": "", "payload": longPayload], .thirdMessageIDIsNull),
            (["bizType": "", "thirdMsgId": long], .argsIsNull),
            (["linkToken": "", "payload": longPayload], .argsIsNull),
            (["thirdMsgId": long, "payload": longPayload], .thirdMessageIDLong),
            (["thirdMsgId": long, "osType": "1"], .thirdMessageIDLong),
            (["payload": longPayload, "validTimeEnd": "1"], .payloadLong),
            (["payload": longPayload, "bizType": Self.text(31)], .payloadLong),
            (["osType": "1", "bizType": Self.text(31)], .argsIsNull),
            (["linkToken": long, "bizType": Self.text(31)], .argsIsNull),
            (["bizType": Self.text(31)], .bizNotOnline),
        ]
        for (changes, expected) in pairs { #expect(code(changes) == expected, "\(changes.keys.sorted())") }
    }
}
