import Foundation
import Testing

@testable import Console

@Suite("Console: the API's schemas") struct ConsoleSchemaTests {
    private struct Inner: Encodable { let flag: Bool }

    private struct Sample: Encodable {
        let text: String
        let whole: Int64
        let part: Double?
        let inner: Inner?
        let list: [Inner]
        let names: [String: Int]
        let hidden = 1

        private enum CodingKeys: String, CodingKey { case text, whole, part, inner, list, names }
    }

    @Test("C11: a schema has the encoded members, and requires the members that are always there") func schema() throws
    {
        let sample = Sample(
            text: "", whole: 1, part: nil, inner: Inner(flag: true), list: [Inner(flag: true)], names: ["a": 1])
        let found = try JSONSerialization.data(
            withJSONObject: SchemaEncoder.schema(of: sample), options: [.sortedKeys])
        let inner = #"{"properties":{"flag":{"type":"boolean"}},"required":["flag"],"type":"object"}"#
        let expected =
            #"{"properties":{"inner":\#(inner),"list":{"items":\#(inner),"type":"array"},"#
            + #""names":{"additionalProperties":{"type":"integer"},"type":"object"},"part":{"type":"number"},"#
            + #""text":{"type":"string"},"whole":{"type":"integer"}},"#
            + #""required":["list","names","text","whole"],"type":"object"}"#
        #expect(String(decoding: found, as: UTF8.self) == expected)
    }

    @Test("C11: every call with an answer describes it, with a complete example") func routes() {
        // Routes that answer with a file, a stream or no content.
        let without = ["/meta.config", "/events", "/export", "/recalls", "/replay", "/disconnect", "/release", "/log"]
        for route in ConsoleRoutes.all where route.isAPI && route.method == .get {
            let hasSchema = APIDescription.schema(of: route) != nil
            #expect(hasSchema != without.contains(where: route.pattern.text.hasSuffix), "\(route.pattern.text)")
        }
        for route in ConsoleRoutes.all {
            guard let schema = APIDescription.schema(of: route) else { continue }
            #expect(Self.gaps(in: schema, at: route.pattern.text).isEmpty)
        }
    }

    /// The places where an example has no value to derive a schema from.
    private static func gaps(in schema: [String: Any], at place: String) -> [String] {
        switch schema["type"] as? String {
        case "array":
            let items = schema["items"] as? [String: Any] ?? [:]
            return items.isEmpty ? [place] : gaps(in: items, at: place + "[]")
        case "object" where schema["additionalProperties"] == nil:
            let members = schema["properties"] as? [String: [String: Any]] ?? [:]
            return members.isEmpty ? [place] : members.flatMap { gaps(in: $0.value, at: "\(place).\($0.key)") }
        case nil: return [place]
        default: return []
        }
    }
}
