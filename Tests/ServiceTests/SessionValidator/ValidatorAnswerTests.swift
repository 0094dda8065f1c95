import Testing

@testable import SessionValidator

@Suite("Tenant answers")
struct ValidatorAnswerTests {
    enum Expected { case valid, invalid, unknown }

    static let answers: [(String, Expected)] = [
        // Valid, in every form.
        (#"{"resultCode":"OK","success":true,"result":{"sid":"s1","valid":true}}"#, .valid),
        (#"{"returnCode":"SUCCESS","success":"true","result":{"sid":"s1","valid":"true"}}"#, .valid),
        (#"{"success":true,"result":{"valid":true}}"#, .valid),
        (#"{"success":"TRUE","result":"{\"sid\":\"s1\",\"valid\":\"True\"}"}"#, .valid),
        (#"{"response":{"resultCode":"OK","success":true,"result":{"sid":"s1","valid":true}}}"#, .valid),
        (#"{"response":{"resultCode":"OK","returnCode":"OK","success":true,"result":"{\"valid\":true}"}}"#, .valid),
        (#"{"resultCode":null,"response":null,"success":true,"result":{"sid":null,"valid":true}}"#, .valid),
        (#" { "success" : true , "more" : [1, -2.5e3, {}], "result" : { "valid" : true } } "#, .valid),
        (#"{"success":true,"result":{"sid":"\u0073\u0031","valid":true}}"#, .valid),
        // Invalid: well-formed, and not valid.
        (#"{"resultCode":"OK","success":true,"result":{"sid":"s1","valid":false}}"#, .invalid),
        (#"{"resultCode":"OK","success":true,"result":{"sid":"s1","valid":"false"}}"#, .invalid),
        (#"{"resultCode":"OK","success":true,"result":{"sid":"s2","valid":true}}"#, .invalid),
        (#"{"resultCode":"OK","success":true,"result":{"sid":"","valid":true}}"#, .invalid),
        (#"{"resultCode":"SESSION_EXPIRED","success":true,"result":{"valid":true}}"#, .invalid),
        (#"{"resultCode":"OK","returnCode":"EXPIRED","success":true,"result":{"valid":true}}"#, .invalid),
        (#"{"resultCode":"OK","success":true,"result":{}}"#, .invalid),
        (#"{"resultCode":"OK","success":true}"#, .invalid),
        // Only `result` says `valid`.
        (#"{"resultCode":"OK","success":true,"valid":true}"#, .invalid),
        // Unknown: the response says that the call failed.
        (#"{"resultCode":"OK","success":false,"result":{"valid":true}}"#, .unknown),
        (#"{"resultCode":"ERROR","success":"false"}"#, .unknown),
        // Unknown: not in the required form.
        ("", .unknown),
        ("null", .unknown),
        ("true", .unknown),
        (#"["success"]"#, .unknown),
        ("<html>502 Bad Gateway</html>", .unknown),
        (#"{"error":"no route"}"#, .unknown),
        (#"{"success":1,"result":{"valid":true}}"#, .unknown),
        (#"{"success":"yes","result":{"valid":true}}"#, .unknown),
        (#"{"success":true,"result":{"valid":1}}"#, .unknown),
        (#"{"success":true,"result":{"valid":"yes"}}"#, .unknown),
        (#"{"success":true,"result":{"valid":true,"sid":1}}"#, .unknown),
        (#"{"success":true,"resultCode":200,"result":{"valid":true}}"#, .unknown),
        (#"{"success":true,"result":[{"valid":true}]}"#, .unknown),
        (#"{"success":true,"result":"valid"}"#, .unknown),
        (#"{"response":"none","success":true,"result":{"valid":true}}"#, .unknown),
        (#"{"response":[],"success":true,"result":{"valid":true}}"#, .unknown),
        (#"{"response":"{\"success\":true,\"result\":{\"valid\":true}}"}"#, .unknown),
        // Unknown: two parsers could read it in two ways.
        (#"{"success":true,"result":{"valid":false,"valid":true}}"#, .unknown),
        (#"{"success":false,"success":true,"result":{"valid":true}}"#, .unknown),
        (#"{"success":true,"result":{"valid":false,"\u0076alid":true}}"#, .unknown),
        (#"{"success":true,"result":{"valid":true}} {}"#, .unknown),
        (#"{"success":true,"result":{"valid":true},}"#, .unknown),
        (#"{"success":true,"result":{"valid":True}}"#, .unknown),
        (#"{"success":true,"result":{"valid":true,"sid":"\ud800"}}"#, .unknown),
        (#"{"success":true,"n":01,"result":{"valid":true}}"#, .unknown),
        ("{\"success\":true,\"result\":{\"valid\":true,\"more\":\"a\nb\"}}", .unknown),
    ]

    @Test("V3: every form of answer is judged as the rule says", arguments: answers)
    func judged(_ answer: (text: String, expected: Expected)) {
        #expect(Self.judge(Array(answer.text.utf8)) == answer.expected)
    }

    @Test("V4: an answer that was cut off anywhere is unknown")
    func truncated() {
        let whole = Array(Self.answers[0].0.utf8)
        for length in 0..<whole.count { #expect(Self.judge(Array(whole[..<length])) == .unknown) }
    }

    @Test("V7: an answer of 16 KiB is read, one byte more is unknown")
    func size() {
        let answer = Array(Self.answers[0].0.utf8)
        let padding = [UInt8](repeating: 0x20, count: 16_384 - answer.count)
        #expect(Self.judge(answer + padding) == .valid)
        #expect(Self.judge(answer + padding + [0x20]) == .unknown)
    }

    @Test("V4: nesting without end is unknown, not a crash")
    func depth() {
        let opening = [UInt8](repeating: UInt8(ascii: "["), count: 16_000)
        #expect(Self.judge(opening) == .unknown)
        #expect(Self.judge(Array(#"{"success":"#.utf8) + opening) == .unknown)
    }

    @Test("V4: bytes that are not UTF-8 are unknown")
    func encoding() {
        let parts = #"{"success":true,"result":{"valid":true,"sid":"•"}}"#.split(separator: "•").map { Array($0.utf8) }
        #expect(Self.judge(parts[0] + [0xFF] + parts[1]) == .unknown)
        #expect(Self.judge(parts[0] + [0xC0, 0xAF] + parts[1]) == .unknown)
    }

    @Test("no reason repeats the session")
    func reasons() {
        for (text, _) in Self.answers {
            switch TenantAnswer.outcome(of: Array(text.utf8), sessionID: "secret-session") {
            case .valid: break
            case .invalid(let reason), .unknown(let reason), .noAnswer(let reason):
                #expect(!reason.contains("secret-session"))
            }
        }
    }

    private static func judge(_ bytes: [UInt8]) -> Expected {
        switch TenantAnswer.outcome(of: bytes, sessionID: "s1") {
        case .valid: .valid
        case .invalid: .invalid
        case .unknown, .noAnswer: .unknown
        }
    }
}
