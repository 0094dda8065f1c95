import Foundation

/// A decoded push of badges. A pure value.
struct BadgeList: Hashable, Sendable {
    let version: Int64
    /// Whether the list is full. A full list replaces all badges; an incremental list contains only new and changed
    /// ones.
    let isFull: Bool
    let badges: [Badge]
    /// Paths of deleted badges; only in an incremental list.
    let removed: [BadgePath]

    private struct Form: Decodable {
        let version: Int64
        let badges: [Badge]?
        let changes: [Badge]?
        let removed: [BadgePath]?
    }

    /// Decodes the JSON format of the README (Badges).
    ///
    /// - Throws: `PushFault` when the payload has another format or exceeds a limit.
    init(_ payload: [UInt8]) throws(PushFault) {
        guard payload.count <= ServiceLimits.pushBytes else {
            throw PushFault("the payload has \(payload.count) bytes; the limit is \(ServiceLimits.pushBytes)")
        }
        let form: Form
        do { form = try JSONDecoder().decode(Form.self, from: Data(payload)) } catch {
            throw PushFault("the payload is not the JSON of badges: \(error)")
        }
        guard form.version > 0 else { throw PushFault("version must be above 0, not \(form.version)") }
        version = form.version
        removed = form.removed ?? []
        switch (form.badges, form.changes, form.removed) {
        case (let all?, nil, nil): (isFull, badges) = (true, all)
        case (nil, let changes, _) where changes != nil || form.removed != nil:
            (isFull, badges) = (false, changes ?? [])
        default: throw PushFault("the payload needs either badges, or changes and removed")
        }
        guard Set(badges.map(\.path)).count == badges.count else { throw PushFault("two badges have the same path") }
    }
}
