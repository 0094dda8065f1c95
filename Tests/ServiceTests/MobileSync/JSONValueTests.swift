import Foundation
import MobileSync
import Testing

@Suite("Client library: JSON") struct JSONValueTests {
    private static let examples: [(String, JSONValue)] = [
        ("1", .integer(1)), ("1.0", .integer(1)), ("-9223372036854775808", .integer(.min)), ("0.1", .number(0.1)),
        ("0.30000000000000004", .number(0.1 + 0.2)), ("1e300", .number(1e300)),
        ("5e-324", .number(.leastNonzeroMagnitude)),
    ]

    @Test("a number has the first case that represents it, and keeps its digits", arguments: examples)
    func numbers(text: String, value: JSONValue) throws {
        #expect(try JSONValue(parsing: text.utf8) == value)
        #expect(try JSONValue(parsing: value.bytes()) == value)
    }

    @Test(
        "a number with more digits than a double has is a decimal",
        arguments: [
            "1.2345678901234567890123", "12345678901234567890", "0.10000000000000000001",
        ]) func decimals(text: String) throws
    {
        let value = try JSONValue(parsing: text.utf8)
        #expect(value == .decimal(try #require(Decimal(string: text))))
        #expect(String(decoding: try value.bytes(), as: UTF8.self) == text && value.double == Double(text))
    }

    @Test("equal values have equal bytes, and other text is refused") func bytes() throws {
        let value = try JSONValue(parsing: #"{"b":[null,true,"x/y"],"a":{}}"#.utf8)
        #expect(String(decoding: try value.bytes(), as: UTF8.self) == #"{"a":{},"b":[null,true,"x/y"]}"#)
        #expect(value.members?["b"] == .array([.null, true, "x/y"]) && value.wholeNumber == nil)
        let error = #expect(throws: SyncError.self) { try JSONValue(parsing: "{".utf8) }
        #expect(error?.code == .invalidArgument)
        #expect(throws: SyncError.self) { try JSONValue.number(.infinity).bytes() }
    }
}
