import Foundation

/// A push of badges as it was read; pure.
struct BadgeList: Hashable, Sendable {
    let version: Int64
    /// Whether `badges` are all there are; otherwise those that are new or have changed.
    let isFull: Bool
    let badges: [Badge]
    /// Paths whose badges are gone; of an incremental list.
    let removed: [BadgePath]

    private struct Form: Decodable {
        let version: Int64
        let badges: [Badge]?
        let changes: [Badge]?
        let removed: [BadgePath]?
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
            throw PushFault("it is not the JSON of badges: \(error)")
        }
        guard form.version > 0 else { throw PushFault("a version is above 0, not \(form.version)") }
        version = form.version
        removed = form.removed ?? []
        switch (form.badges, form.changes, form.removed) {
        case (let all?, nil, nil): (isFull, badges) = (true, all)
        case (nil, let changes, _) where changes != nil || form.removed != nil:
            (isFull, badges) = (false, changes ?? [])
        default: throw PushFault("it takes either badges, or changes and removed")
        }
        guard Set(badges.map(\.path)).count == badges.count else { throw PushFault("a path has two badges") }
    }
}
