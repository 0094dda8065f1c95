import DeliveryHistory
import TestSupport
import Testing

@testable import ServiceKit

@Suite("The strict JSON reader")
struct JSONReaderTests {
    private func members(_ text: String) throws(JSONFault) -> [String: JSONValue] {
        try JSONReader.members(of: Array(text.utf8))
    }

    @Test("every kind of value is read, numbers as they are spelt")
    func values() throws {
        let text = #" { "a" : null , "b":true,"c":false,"d":-1.50e+3,"e":"x","f":0 } "#
        #expect(
            try members(text) == [
                "a": .null, "b": .bool(true), "c": .bool(false), "d": .number("-1.50e+3"), "e": .string("x"),
                "f": .number("0"),
            ])
        #expect(try members("{}") == [:])
    }

    @Test("a structure keeps its text, order, escapes and numbers, without white space between tokens")
    func structures() throws {
        let text =
            "{\"p\": { \"z\" : [ 1.0 , {\"q\":\"a b\\u0041\\n\"} , 1e2 ],\r\n\t\"a\":{} , \"n\":null }, \"x\":[ ]}"
        let members = try members(text)
        #expect(members["p"] == .structure(Array(#"{"z":[1.0,{"q":"a b\u0041\n"},1e2],"a":{},"n":null}"#.utf8)))
        #expect(members["x"] == .structure(Array("[]".utf8)))
    }

    @Test("escapes stand for their characters, pairs for one beyond the first plane")
    func escapes() throws {
        #expect(
            try members(#"{"a":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00😀"}"#)["a"]
                == .string("\"\\/\u{8}\u{c}\n\r\t\0é😀😀"))
    }

    @Test(
        "a fault has its own kind",
        arguments: [
            ("", JSONFault.notAnObject), ("[]", .notAnObject), ("\"a\"", .notAnObject), ("\u{FEFF}{}", .notAnObject),
            (#"{"a":1,"a":2}"#, .duplicateMember), (#"{"a":1,"\u0061":2}"#, .duplicateMember),
            (#"{"a":[{"b":1,"b":1}]}"#, .duplicateMember), (#"{"a":"\ud83d"}"#, .loneSurrogate),
            (#"{"a":"\ude00"}"#, .loneSurrogate), (#"{"a":"\ud83d\u0041"}"#, .loneSurrogate),
            (#"{"a":"\ud83dx"}"#, .loneSurrogate),
        ])
    func faults(text: String, fault: JSONFault) {
        #expect(throws: fault) { try members(text) }
    }

    @Test("names that only look equal are two members")
    func spelling() throws {
        let text = "{\"\u{E9}\":1,\"e\u{301}\":2}"
        #expect(try members("{\"p\":\(text)}")["p"] == .structure(Array(text.utf8)))
        #expect(try members(text).count == 1, "both are unknown; one is kept")
        #expect(throws: JSONFault.duplicateMember) { try members("{\"\u{E9}\":1,\"e\u{301}\":2,\"e\\u0301\":3}") }
    }

    @Test(
        "broken syntax is refused",
        arguments: [
            "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{,}", "{a:1}", "{'a':1}", "{\"a\":01}", "{\"a\":1.}",
            "{\"a\":.5}", "{\"a\":+1}", "{\"a\":1e}", "{\"a\":-}", "{\"a\":tru}", "{\"a\":True}", "{\"a\":[1,]}",
            "{\"a\":[1 2]}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"\\u12\"}",
            "{\"a\":\"", "{\"a\":\"\\", "{\"a\":1}x", "{\"a\":1}{}", "{\"a\" 1}", "{\"a\":]}", "{\"a\":[}",
        ])
    func malformed(text: String) {
        #expect {
            try members(text)
        } throws: { error in
            if case .malformed = error as? JSONFault { true } else { false }
        }
    }

    @Test("16 levels are read, 17 are not")
    func depth() throws {
        func nested(_ levels: Int) -> String {
            "{\"a\":" + String(repeating: "[", count: levels - 1) + String(repeating: "]", count: levels - 1) + "}"
        }
        _ = try members(nested(16))
        #expect(throws: JSONFault.tooDeep) { try members(nested(17)) }
        #expect(throws: JSONFault.tooDeep) { try members("{\"a\":" + String(repeating: "[", count: 60_000)) }
    }

    @Test("bytes that are not UTF-8 are refused at any place")
    func utf8() {
        let broken: [[UInt8]] = [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82]]
        for bytes in broken {
            let body = Array("{\"a\":\"".utf8) + bytes + Array("\"}".utf8)
            #expect(throws: JSONFault.invalidUTF8) { try JSONReader.members(of: body) }
        }
    }

    @Test("a damaged body gives members or a fault, never a trap")
    func damaged() {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        let whole = Array(#"{"a":"x\ud83d\ude00\n","b":[1,-2.5e3,{"c":null}],"d":{"e":true},"f":"é😀"}"#.utf8)
        for _ in 0..<20_000 {
            var body = whole
            for _ in 0...Int.random(in: 0...3, using: &generator) {
                let index = Int.random(in: 0..<body.count, using: &generator)
                switch Int.random(in: 0...2, using: &generator) {
                case 0: body[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: body.remove(at: index)
                default: body = Array(body[..<index]) + [whole.randomElement(using: &generator) ?? 0] + body[index...]
                }
            }
            _ = try? JSONReader.members(of: body)
        }
        #expect(Bool(true), "seed \(seed)")
    }

    @Test("a value of any kind is valid alone, and nothing after it") func anyValue() {
        for text in [
            "null", "true", " -1.5e3 ", "\"é\"", "[]", "{}", #"[{"a":[1,"b"]},null]"#, "{\"\u{E9}\":1,\"e\u{301}\":2}",
        ] {
            #expect(JSONReader.isValid(Array(text.utf8), levels: 4), "\(text)")
        }
        for text in [
            "", " ", "nul", "1 2", "1}", "[] []", "01", #"{"a":1,"a":1}"#, #"[{"a":1,"\u0061":1}]"#, #""\ud800""#,
        ] {
            #expect(!JSONReader.isValid(Array(text.utf8), levels: 4), "\(text)")
        }
        #expect(!JSONReader.isValid([0x22, 0xFF, 0x22], levels: 4))
        #expect(JSONReader.isValid(Array("[[[[1]]]]".utf8), levels: 4))
        #expect(!JSONReader.isValid(Array("[[[[[]]]]]".utf8), levels: 4))
    }
}
