import Foundation
import MobileSync

/// A decoded push of switches; a pure value.
struct SwitchPush: Hashable, Sendable {
    let version: Int64
    /// Whether `values` is a full set. Otherwise it has only changes, with null for a removed switch.
    let isFull: Bool
    let values: [String: JSONValue]

    private struct Form: Decodable {
        let version: Int64
        let values: [String: JSONValue]?
        let changes: [String: JSONValue]?
    }

    /// Decodes the JSON format of the README (Configuration switches).
    ///
    /// - Throws: `PushFault` when the payload has another format or exceeds a limit.
    init(_ payload: [UInt8]) throws(PushFault) {
        guard payload.count <= ServiceLimits.pushBytes else {
            throw PushFault("the payload has \(payload.count) bytes; the limit is \(ServiceLimits.pushBytes)")
        }
        let form: Form
        do { form = try JSONDecoder().decode(Form.self, from: Data(payload)) } catch {
            throw PushFault("the payload is not the JSON of switches: \(error)")
        }
        guard form.version > 0 else { throw PushFault("version must be above 0, not \(form.version)") }
        version = form.version
        switch (form.values, form.changes) {
        case (let values?, nil):
            (isFull, self.values) = (true, values)
            guard !values.values.contains(.null) else { throw PushFault("a full set must not contain null") }
        case (nil, let changes?): (isFull, values) = (false, changes)
        default: throw PushFault("the payload needs either values or changes")
        }
        for key in values.keys where !(1...ServiceLimits.keyUnits).contains(key.utf16.count) {
            throw PushFault("a key must have 1 to \(ServiceLimits.keyUnits) characters, not \(key.utf16.count)")
        }
    }
}
