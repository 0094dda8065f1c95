/// A push that tells of resources: `{"resources":[{"uri":"/incidents/17","etag":"…","action":"refresh","body":…}]}`, or
/// one of them by itself.
struct ResourcePush: Sendable, Hashable {
    enum Action: String, Sendable, Hashable, CaseIterable {
        /// The copy is expired from now on.
        case invalidate
        /// The copy is fetched anew, or replaced by the body.
        case refresh
        /// There is no such resource any more.
        case delete
    }

    struct Change: Sendable, Hashable {
        /// Without a query it means a collection with any.
        let uri: ResourceURI
        let action: Action
        /// Of the version that the service has now.
        let etag: String?
        let body: [UInt8]?
    }

    let changes: [Change]

    /// - Parameter locate: makes a URI of what stands in `uri`.
    /// - Throws: `ResourceError.push` with what is wrong; nothing of it is done then.
    init(_ payload: [UInt8], locate: (String) -> ResourceURI?) throws(ResourceError) {
        guard let root = ResourceValue.parse(payload), case .object(let members) = root else {
            throw ResourceError(.push, "a push of resources is no JSON object")
        }
        let values: [ResourceValue]
        switch members["resources"] {
        case nil: values = [root]
        case .list(let list)?: values = list
        default: throw ResourceError(.push, "resources in a push is no list")
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
