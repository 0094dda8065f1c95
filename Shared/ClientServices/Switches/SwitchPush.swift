import Foundation

/// A push of switches as it was read; pure.
struct SwitchPush: Hashable, Sendable {
    let version: Int64
    /// Whether `values` are all there are; otherwise those that change, null for one that is gone.
    let isFull: Bool
    let values: [String: SwitchValue]

    private struct Form: Decodable {
        let version: Int64
        let values: [String: SwitchValue]?
        let changes: [String: SwitchValue]?
    }

    /// Reads the JSON that the README documents.
    ///
    /// - Throws: `PushFault` when it is something else, or exceeds a limit.
    init(_ payload: [UInt8]) throws(PushFault) {
        guard payload.count <= ServiceLimits.pushBytes else {
            throw PushFault("it has \(payload.count) bytes; at most \(ServiceLimits.pushBytes) are taken")
        }
        let form: Form
        do { form = try JSONDecoder().decode(Form.self, from: Data(payload)) } catch {
            throw PushFault("it is not the JSON of switches: \(error)")
        }
        guard form.version > 0 else { throw PushFault("a version is above 0, not \(form.version)") }
        version = form.version
        switch (form.values, form.changes) {
        case (let values?, nil):
            (isFull, self.values) = (true, values)
            guard !values.values.contains(.null) else { throw PushFault("null has no meaning in a full set") }
        case (nil, let changes?): (isFull, values) = (false, changes)
        default: throw PushFault("it takes either values or changes")
        }
        for key in values.keys where !(1...ServiceLimits.keyUnits).contains(key.utf16.count) {
            throw PushFault("a key has 1 to \(ServiceLimits.keyUnits) characters, not \(key.utf16.count)")
        }
    }
}
