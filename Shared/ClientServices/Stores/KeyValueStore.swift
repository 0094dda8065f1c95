import Foundation

/// Values of one owner by key: a user's, or common ones. It stays its owner's, whoever signs in later.
///
/// A value is anything that is `Codable`: numbers, texts, true or false, `Date`, `Data`, objects. Each change is on the
/// disk when its call returns. Values are sealed when the `ServiceStore` has a key.
public struct KeyValueStore: Sendable {
    let store: ServiceStore
    /// A user's id; empty: common.
    let owner: String

    /// Sets a value, in place of the one before.
    ///
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for a key that is empty, has a NUL or over 256
    ///   characters, and for a value that cannot be encoded, or takes over 4,000,000 bytes.
    public func set(_ value: some Encodable, for key: String) throws(ClientServiceError) {
        try ServiceLimits.check(key: key)
        let body: Data
        do { body = try JSONEncoder().encode(value) } catch {
            throw ClientServiceError(.invalidArgument, "the value for \(key) cannot be encoded: \(error)")
        }
        guard body.count <= ServiceLimits.valueBytes else {
            throw ClientServiceError(
                .invalidArgument, "the value for \(key) takes \(body.count) bytes; at most \(ServiceLimits.valueBytes)")
        }
        try store.write("writing a value") { items in try items.put(body, .values, owner: owner, key: key) }
    }

    /// The value of this type; nil: there is none.
    ///
    /// - Throws: `ClientServiceError`: `store`; `wrongType` when there is one of another type.
    public func value<Value: Decodable>(
        _ key: String, as type: Value.Type = Value.self
    ) throws(ClientServiceError) -> Value? {
        let body = try store.read("reading a value") { items in try items.body(.values, owner: owner, key: key) }
        guard let body else { return nil }
        do { return try JSONDecoder().decode(Value.self, from: body) } catch {
            throw ClientServiceError(.wrongType, "what is stored for \(key) is no \(Value.self)")
        }
    }

    /// Keys in the order of their bytes, as far as they begin so.
    ///
    /// - Throws: `ClientServiceError.store`.
    public func keys(prefix: String = "") throws(ClientServiceError) -> [String] {
        try store.read("reading the keys") { items in try items.keys(.values, owner: owner, prefix: prefix) }
    }

    /// Removes these, in one go; what is not there is no error.
    ///
    /// - Throws: `ClientServiceError.store`; all are there still.
    public func remove(_ keys: [String]) throws(ClientServiceError) {
        try store.write("removing values") { items in
            for key in keys { try items.remove(.values, owner: owner, key: key) }
        }
    }

    /// Removes those whose keys begin so, in one go; empty: all.
    ///
    /// - Throws: `ClientServiceError.store`; all are there still.
    public func remove(prefix: String) throws(ClientServiceError) {
        try store.write("removing values") { items in
            for key in try items.keys(.values, owner: owner, prefix: prefix) {
                try items.remove(.values, owner: owner, key: key)
            }
        }
    }
}
