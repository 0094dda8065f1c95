import Foundation

/// Several edits in one request: `POST` with JSON `{"edits":[{"id","method","uri","ifMatch","contentType","body"}]}`,
/// answered by `{"results":[{"id","status","etag","location","body"}]}`. README.md, Edits in one request, has the rules.
struct EditBatch: Sendable, Hashable {
    /// In one request.
    static let mostEdits = 100
    /// Of the bodies in one request; an edit that is larger goes by itself.
    static let mostBytes = 1_000_000

    let edits: [StoredEdit]

    /// As many of the first edits as go together: it ends before a second edit of a resource, which is made on the
    /// first one's new version, before a body that is no JSON, and before what would be too much.
    init(_ waiting: [StoredEdit]) {
        var (edits, seen, bytes): ([StoredEdit], Set<ResourceURI>, Int) = ([], [], 0)
        for edit in waiting.prefix(Self.mostEdits) {
            bytes += edit.body.count
            let isJSON = edit.kind == .delete || ResourceValue.parse(edit.body) != nil
            guard isJSON, bytes <= Self.mostBytes, seen.insert(edit.uri).inserted else { break }
            edits.append(edit)
        }
        self.edits = edits
    }

    func json() throws(ResourceError) -> [UInt8] {
        let list = edits.map { edit in
            var members: [String: ResourceValue] = [
                "id": .text(edit.id), "method": .text(edit.kind.method),
                "uri": .text(edit.kind == .create ? edit.uri.parentPath : edit.uri.description),
            ]
            if let condition = edit.condition { members["ifMatch"] = .text(condition) }
            if edit.kind != .delete {
                members["contentType"] = .text(edit.contentType)
                members["body"] = ResourceValue.parse(edit.body)
            }
            return ResourceValue.object(members)
        }
        return try ResourceValue.object(["edits": .list(list)]).json()
    }

    /// By the edits' ids; nil when it is no such answer. A result that cannot be read is left out, and its edit is sent
    /// by itself.
    static func outcomes(_ json: [UInt8], asOf: Date) -> [String: EditOutcome]? {
        guard case .list(let results)? = ResourceValue.parse(json)?["results"] else { return nil }
        var outcomes: [String: EditOutcome] = [:]
        for result in results {
            guard case .text(let id)? = result["id"], case .number(let number)? = result["status"],
                let status = Int(number.description), (100...599).contains(status)
            else { continue }
            func text(_ name: String) -> String? {
                if case .text(let text)? = result[name] { return text }
                return nil
            }
            outcomes[id] = EditOutcome(
                status: status, etag: text("etag"), location: text("location"), body: try? result["body"]?.json(),
                asOf: asOf)
        }
        return outcomes
    }
}
