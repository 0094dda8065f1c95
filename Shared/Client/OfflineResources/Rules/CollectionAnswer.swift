import Foundation
import MobileSync

/// A decoded response for a collection: `[ … ]`, or `{"items":[ … ]}` with optional `uris` and `etags`, one for each
/// item (RES7).
///
/// Without `uris`, an item's URI is below the collection. Its key is the member `id` or another member that the
/// configuration names.
struct CollectionAnswer: Sendable, Hashable {
    struct Item: Sendable, Hashable {
        let uri: ResourceURI
        /// The entity tag; nil when the response has none. Edits of the item then have no condition.
        let etag: String?
        let body: [UInt8]
    }

    /// The largest number of items; more items need pages.
    static let mostItems = 10_000

    let items: [Item]

    /// - Parameters:
    ///   - keys: the members that can contain an item's key; the first one that exists counts.
    ///   - locate: converts an entry of `uris` to a URI.
    /// - Throws: `ResourceError.answer` with the reason.
    init(
        _ json: [UInt8], of collection: ResourceURI, keys: [String], locate: (String) -> ResourceURI?
    ) throws(ResourceError) {
        func wrong(_ reason: String) -> ResourceError {
            ResourceError(.answer, "the response for the collection \(collection) cannot be used: \(reason)")
        }
        var (values, uris, etags): ([JSONValue], [JSONValue]?, [JSONValue]?)
        switch JSONValue.parse(json) {
        case .array(let list)?: (values, uris, etags) = (list, nil, nil)
        case .object(let members)?:
            guard case .array(let list)? = members["items"] else { throw wrong("it has no list items") }
            func side(_ name: String) throws(ResourceError) -> [JSONValue]? {
                guard let value = members[name], value != .null else { return nil }
                guard case .array(let side) = value, side.count == list.count else {
                    throw wrong("\(name) is not a list with one entry for each item")
                }
                return side
            }
            (values, uris, etags) = (list, try side("uris"), try side("etags"))
        default: throw wrong("it is neither a JSON list nor a JSON object")
        }
        guard values.count <= Self.mostItems else {
            throw wrong("it has more than \(Self.mostItems) items; fetch it with a limit")
        }
        var items: [Item] = []
        var seen: Set<ResourceURI> = []
        for (index, value) in values.enumerated() {
            let given: ResourceURI?? = uris.map { side in
                if case .text(let text) = side[index] { locate(text) } else { nil as ResourceURI? }
            }
            guard let uri = given ?? Self.uri(of: value, in: collection, keys: keys) else {
                throw wrong("item \(index) has neither a URI nor a member \(keys.joined(separator: ", "))")
            }
            guard seen.insert(uri).inserted else { throw wrong("\(uri) occurs twice") }
            var etag: String?
            if case .text(let text)? = etags?[index], ETag.isWellFormed(text) { etag = text }
            items.append(Item(uri: uri, etag: etag, body: try value.json()))
        }
        self.items = items
    }

    private static func uri(of value: JSONValue, in collection: ResourceURI, keys: [String]) -> ResourceURI? {
        let key = keys.lazy.compactMap { value[$0] }.first
        if case .text(let text)? = key { return text.isEmpty ? nil : collection.item(text) }
        return (key?.exactNumber).map { collection.item("\($0)") }
    }
}
