/// Resources as values of the app's own types.
extension ResourceClient {
    /// Fetches one object as a value: `try await resources.fetch(Incident.self, "/incidents/17")`.
    ///
    /// - Parameters: as for `fetchObject`.
    /// - Returns: the value with its resource; nil when the object does not exist or is not available now.
    /// - Throws: as `fetchObject`; `ResourceError.decoding` when the body has another form.
    public func fetch<Value: Decodable & Sendable>(
        _ type: Value.Type, _ uri: String, policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> TypedResource<Value>? {
        guard let resource = try await fetchObject(uri, policy: policy, headers: headers) else { return nil }
        return try typed(type, resource)
    }

    /// Fetches a collection, or one page of it, as values.
    ///
    /// - Parameters: as for `fetchCollection`.
    /// - Returns: the items; nil when the collection does not exist or is not available now.
    /// - Throws: as `fetch`; one item of another form fails the call.
    public func fetchAll<Value: Decodable & Sendable>(
        _ type: Value.Type, in uri: String, queryFor tests: [ResourceQuery] = [], limit: Int? = nil,
        offset: Int? = nil, orderBy: [SortKey] = [], policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> [TypedResource<Value>]? {
        let found = try await fetchCollection(
            uri, queryFor: tests, limit: limit, offset: offset, orderBy: orderBy, policy: policy, headers: headers)
        guard let found else { return nil }
        var items: [TypedResource<Value>] = []
        for item in found.items { items.append(try typed(type, item)) }
        return items
    }

    /// Creates an item in a collection, as `create(in:body:)` does.
    ///
    /// - Throws: as `create(in:body:)`.
    public func create<Value: Encodable>(
        _ value: Value, in uri: String, policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        try await create(in: uri, body: configuration.coding.body(of: value), policy: policy, headers: headers)
    }

    /// Replaces a resource, as `update(_:body:)` does. Members that the type does not have are lost; `patch` keeps
    /// them.
    ///
    /// - Throws: as `update(_:body:)`.
    public func update<Value: Encodable>(
        _ uri: String, with value: Value, policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        try await update(uri, body: configuration.coding.body(of: value), policy: policy, headers: headers)
    }

    func typed<Value: Decodable & Sendable>(
        _ type: Value.Type, _ resource: Resource
    ) throws(ResourceError) -> TypedResource<Value> {
        TypedResource(value: try configuration.coding.value(type, of: resource), resource: resource)
    }
}
