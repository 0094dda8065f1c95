import Foundation
import ServiceKit

/// The OpenAPI 3.1 description of the JSON API, made from the routes, so that it is complete (C11).
enum APIDescription {
    /// The document's text.
    static func document(of routes: [Route]) -> [UInt8] {
        var paths: [String: [String: Any]] = [:]
        for route in routes where route.isAPI {
            paths[route.pattern.text, default: [:]][route.method.rawValue.lowercased()] = operation(route)
        }
        let document: [String: Any] = [
            "openapi": "3.1.0",
            "info": [
                "title": "Mobile Sync Service console", "version": ServiceMain.version,
                "description": introduction,
            ],
            "servers": [["url": "/"]],
            "security": [["session": [String]()]],
            "paths": paths,
            "components": [
                "securitySchemes": ["session": ["type": "http", "scheme": "bearer"]],
                "schemas": ["Problem": problem],
            ],
        ]
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return (try? JSONSerialization.data(withJSONObject: document, options: options)).map { Array($0) } ?? []
    }

    private static let introduction = """
        The calls of the console's pages. Sign in with POST /api/v1/session and send the token as \
        Authorization: Bearer. Calls that are hard to undo need the password again (PASSWORD_NEEDED): send it to POST \
        /api/v1/session/confirm; it is valid for five minutes. Times are milliseconds since 1970. Every refusal has a \
        code, a sentence with the reason and the action, the wrong member if there is one, and the request's id.
        """

    private static func operation(_ route: Route) -> [String: Any] {
        var parameters: [[String: Any]] = route.pattern.names.map {
            ["name": $0, "in": "path", "required": true, "schema": ["type": "string"]]
        }
        parameters += route.queries.map {
            [
                "name": $0.name, "in": "query", "required": $0.isRequired, "description": $0.words,
                "schema": ["type": $0.form.rawValue],
            ]
        }
        let refusal: [String: Any] = [
            "description": "Refused.",
            "content": ["application/json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
        ]
        var operation: [String: Any] = [
            "summary": route.summary,
            "description": "For \(route.access.words).\(route.needsPassword ? " Needs the password again." : "")",
            "operationId": name(of: route), "parameters": parameters,
            "responses": ["2XX": answer(route), "4XX": refusal, "5XX": refusal],
        ]
        if route.method != .get {
            // The change is made, but this console's copy does not have it yet.
            let late = refusal.merging(["description": "Done, but not visible here yet: read again."]) { $1 }
            operation["responses"] = ["2XX": answer(route), "202": late, "4XX": refusal, "5XX": refusal]
        }
        if !route.inputs.isEmpty { operation["requestBody"] = body(route.inputs) }
        if route.access == .open { operation["security"] = [[String: Any]]() }
        return operation
    }

    /// The successful response, with its schema.
    private static func answer(_ route: Route) -> [String: Any] {
        guard let schema = schema(of: route) else { return ["description": "Done."] }
        return ["description": "Done.", "content": ["application/json": ["schema": schema]]]
    }

    /// The schema of a route's answer; nil when the answer is empty or not JSON.
    static func schema(of route: Route) -> [String: Any]? { route.example.map { SchemaEncoder.schema(of: $0) } }

    private static func body(_ inputs: [RouteInput]) -> [String: Any] {
        var properties: [String: Any] = [:]
        for input in inputs { properties[input.name] = ["type": input.form.rawValue, "description": input.words] }
        return [
            "required": true,
            "content": [
                "application/json": [
                    "schema": [
                        "type": "object", "properties": properties,
                        "required": inputs.filter(\.isRequired).map(\.name),
                    ]
                ]
            ],
        ]
    }

    /// A unique operation id, made from the method and the path.
    private static func name(of route: Route) -> String {
        let words = route.pattern.text.dropFirst("/api/v1/".count).split { !$0.isLetter }
        return route.method.rawValue.lowercased() + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    private static var problem: [String: Any] {
        [
            "type": "object", "required": ["code", "detail", "requestId"],
            "properties": [
                "code": ["type": "string"], "detail": ["type": "string"], "field": ["type": "string"],
                "requestId": ["type": "string"],
            ],
        ]
    }
}
