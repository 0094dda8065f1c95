import MobileSync

/// A decoded push about resources: `{"resources":[{"uri":"/incidents/17","etag":"…","action":"refresh","body":…}]}`, or
/// one element of the list alone.
struct ResourcePush: Sendable, Hashable {
    enum Action: String, Sendable, Hashable, CaseIterable {
        /// Marks the copy as expired.
        case invalidate
        /// Fetches the copy again, or replaces it by the body.
        case refresh
        /// The resource does not exist any more.
        case delete
    }

    struct Change: Sendable, Hashable {
        /// A URI without a query also names the collection with any query.
        let uri: ResourceURI
        let action: Action
        /// The entity tag of the backend's current version.
        let etag: String?
        let body: [UInt8]?
    }

    let changes: [Change]

    /// - Parameter locate: converts a member `uri` to a URI.
    /// - Throws: `ResourceError.push` with the reason; nothing is applied then.
    init(_ payload: [UInt8], locate: (String) -> ResourceURI?) throws(ResourceError) {
        guard let root = JSONValue.parse(payload), case .object(let members) = root else {
            throw ResourceError(.push, "the payload of a push about resources is not a JSON object")
        }
        let values: [JSONValue]
        switch members["resources"] {
        case nil: values = [root]
        case .array(let list)?: values = list
        default: throw ResourceError(.push, "the member resources of a push is not a list")
        }
        var changes: [Change] = []
        for (index, value) in values.enumerated() {
            guard case .text(let text)? = value["uri"], let uri = locate(text) else {
                throw ResourceError(.push, "resource \(index) of a push has no uri relative to the base URL")
            }
            guard case .text(let name)? = value["action"], let action = Action(rawValue: name) else {
                let names = Action.allCases.map(\.rawValue).joined(separator: ", ")
                throw ResourceError(.push, "\(uri) in a push has an action other than \(names)")
            }
            var etag: String?
            if case .text(let text)? = value["etag"], ETag.isWellFormed(text) { etag = text }
            var body: [UInt8]?
            if let value = value["body"] { body = try value.json() }
            changes.append(Change(uri: uri, action: action, etag: etag, body: body))
        }
        self.changes = changes
    }
}
