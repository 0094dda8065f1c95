import Foundation
import Synchronization

/// A tenant's backend with rows of entities: it executes operations and answers with the new state.
final class EntityTenant: Sendable {
    /// A log record that a device wrote.
    struct Log: Decodable, Sendable {
        let messageId: String
        let component: String
        let entityKey: String
        let code: Int
        let level: String
        let message: String
        let operation: String
    }

    private struct Part: Decodable {
        struct Body: Decodable {
            var fields: [String: String]?
            var parameters: [String: String]?
            var logRecords: [Log]?
        }

        let component: String
        let entityKey: String
        let operation: String
        var body: Body?
        var children: [Part]?
    }

    private struct Entry: Encodable {
        let component: String
        let key: String
        let change: String
        let counter: Int64?
        let fields: [String: String]?
    }

    private struct Answer: Encodable {
        let `import`: [String: [Entry]]
    }

    private struct State {
        var rows: [String: [String: String]] = [:]
        var logs: [Log] = []
        var counter: Int64 = 100
    }

    private let state = Mutex(State())

    /// The fields of a row, named like `Incident/17`.
    func row(_ name: String) -> [String: String]? { state.withLock { $0.rows[name] } }

    /// Log records of devices, in the order of arrival.
    var logs: [Log] { state.withLock { $0.logs } }

    /// An oplog with the state of a row and without a counter: the order of arrival decides.
    static func oplog(_ type: String, _ key: String, _ fields: [String: String]) throws -> String {
        let row = Entry(component: type, key: key, change: "U", counter: nil, fields: fields)
        return String(decoding: try JSONEncoder().encode(row), as: UTF8.self)
    }

    /// Executes an operation with its children.
    func answer(to call: OperationTenant.Call) -> OperationTenant.Answer {
        guard let root = try? JSONDecoder().decode(Part.self, from: Data(call.json)) else {
            return OperationTenant.Answer(status: 422, body: #"{"message": "no rows"}"#)
        }
        let entries = state.withLock { state in
            ([root] + (root.children ?? [])).compactMap { Self.apply($0, to: &state) }
        }
        guard !entries.isEmpty else { return OperationTenant.Answer() }
        let body = (try? JSONEncoder().encode(Answer(import: ["entities": entries]))) ?? Data()
        return OperationTenant.Answer(body: String(decoding: body, as: UTF8.self))
    }

    private static func apply(_ part: Part, to state: inout State) -> Entry? {
        let name = "\(part.component)/\(part.entityKey)"
        switch part.operation {
        case "create" where part.component == "LogRecord":
            state.logs += part.body?.logRecords ?? []
            return nil
        case "create", "update": state.rows[name] = part.body?.fields
        case "delete": state.rows[name] = nil
        case "rename": state.rows[name]?.merge(part.body?.parameters ?? [:]) { $1 }
        default: return nil
        }
        state.counter += 1
        let fields = state.rows[name]
        return Entry(
            component: part.component, key: part.entityKey, change: fields == nil ? "D" : "U", counter: state.counter,
            fields: fields)
    }
}
