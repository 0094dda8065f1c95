import Foundation
import MobileSync

/// Several edits in one request: `POST` with JSON `{"edits":[{"id","method","uri","ifMatch","contentType","body"}]}`,
/// answered by `{"results":[{"id","status","etag","location","body"}]}` (README.md, Working offline).
struct EditBatch: Sendable, Hashable {
    /// The largest number of edits in one request.
    static let mostEdits = 100
    /// The largest total size of the bodies, in bytes; a larger edit is sent alone.
    static let mostBytes = 1_000_000

    let edits: [StoredEdit]

    /// Takes the longest prefix of the edits that fits in one request. It ends before a second edit of a resource,
    /// because that edit needs the first one's new tag; before a body that is not JSON and an edit with header fields
    /// of its own, which a batch has no place for; and at the limits.
    init(_ waiting: [StoredEdit]) {
        var (edits, seen, bytes): ([StoredEdit], Set<ResourceURI>, Int) = ([], [], 0)
        for edit in waiting.prefix(Self.mostEdits) {
            bytes += edit.body.count
            let isJSON = edit.kind == .delete || JSONValue.parse(edit.body) != nil
            let isPlain = isJSON && edit.headers.fields.isEmpty
            guard isPlain, bytes <= Self.mostBytes, seen.insert(edit.uri).inserted else { break }
            edits.append(edit)
        }
        self.edits = edits
    }

    func json() throws(ResourceError) -> [UInt8] {
        let list = edits.map { edit in
            var members: [String: JSONValue] = [
                "id": .text(edit.id), "method": .text(edit.kind.method),
                "uri": .text(edit.kind == .create ? edit.uri.parentPath : edit.uri.description),
            ]
            if let condition = edit.condition { members["ifMatch"] = .text(condition) }
            if edit.kind != .delete {
                members["contentType"] = .text(edit.contentType)
                members["body"] = JSONValue.parse(edit.body)
            }
            return JSONValue.object(members)
        }
        return try JSONValue.object(["edits": .array(list)]).json()
    }

    /// The results by edit id; nil when the response has another format. An unreadable result is left out, and its edit
    /// is then sent alone.
    static func outcomes(_ json: [UInt8], asOf: Date) -> [String: EditOutcome]? {
        guard case .array(let results)? = JSONValue.parse(json)?["results"] else { return nil }
        var outcomes: [String: EditOutcome] = [:]
        for result in results {
            guard case .text(let id)? = result["id"], let number = result["status"]?.wholeNumber,
                let status = Int(exactly: number), (100...599).contains(status)
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
