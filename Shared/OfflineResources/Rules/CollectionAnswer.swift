import Foundation

/// What a service answers for a collection: `[ … ]`, or `{"items":[ … ]}`, perhaps with `uris` and `etags`, one for each
/// item (spec, two-way §1).
///
/// Without `uris` an item is below its collection, by its member `id` or another that the configuration names.
struct CollectionAnswer: Sendable, Hashable {
    struct Item: Sendable, Hashable {
        let uri: ResourceURI
        /// Nil: it is not known; edits of the item are not checked then.
        let etag: String?
        let body: [UInt8]
    }

    /// More is a mistake of the service: it should be asked in pages.
    static let mostItems = 10_000

    let items: [Item]

    /// - Parameters:
    ///   - keys: members that an item's key may be in; the first that is there counts.
    ///   - locate: makes a URI of what stands in `uris`.
    /// - Throws: `ResourceError.answer` with what is wrong.
    init(
        _ json: [UInt8], of collection: ResourceURI, keys: [String], locate: (String) -> ResourceURI?
    ) throws(ResourceError) {
        func wrong(_ what: String) -> ResourceError {
            ResourceError(.answer, "the answer for the collection \(collection) cannot be used: \(what)")
        }
        var (values, uris, etags): ([ResourceValue], [ResourceValue]?, [ResourceValue]?)
        switch ResourceValue.parse(json) {
        case .list(let list)?: (values, uris, etags) = (list, nil, nil)
        case .object(let members)?:
            guard case .list(let list)? = members["items"] else { throw wrong("there is no list items") }
            func side(_ name: String) throws(ResourceError) -> [ResourceValue]? {
                guard let value = members[name], value != .null else { return nil }
                guard case .list(let side) = value, side.count == list.count else {
                    throw wrong("\(name) is no list with one for each item")
                }
                return side
            }
            (values, uris, etags) = (list, try side("uris"), try side("etags"))
        default: throw wrong("it is neither a list nor an object in JSON")
        }
        guard values.count <= Self.mostItems else { throw wrong("over \(Self.mostItems) items; ask with a limit") }
        var items: [Item] = []
        var seen: Set<ResourceURI> = []
        for (index, value) in values.enumerated() {
            let given: ResourceURI?? = uris.map { side in
                if case .text(let text) = side[index] { locate(text) } else { nil as ResourceURI? }
            }
            guard let uri = given ?? Self.uri(of: value, in: collection, keys: keys) else {
                throw wrong("item \(index) has neither a URI nor a member \(keys.joined(separator: ", "))")
            }
            guard seen.insert(uri).inserted else { throw wrong("\(uri) is there twice") }
            var etag: String?
            if case .text(let text)? = etags?[index], ETag.isWellFormed(text) { etag = text }
            items.append(Item(uri: uri, etag: etag, body: try value.json()))
        }
        self.items = items
    }

    private static func uri(of value: ResourceValue, in collection: ResourceURI, keys: [String]) -> ResourceURI? {
        switch keys.lazy.compactMap({ value[$0] }).first {
        case .text(let key)?: return key.isEmpty ? nil : collection.item(key)
        case .number(let key)?: return collection.item(key.description)
        default: return nil
        }
    }
}
