import Foundation

/// Values by key that belong to one user, or to no user (common). The store keeps its owner when another user signs in.
///
/// A value is anything `Codable`: numbers, text, Booleans, `Date`, `Data`, objects. Each change is on disk when its
/// call returns. Values are encrypted when the `ServiceStore` has a key.
public struct KeyValueStore: Sendable {
    let store: ServiceStore
    /// A user's id; empty: common.
    let owner: String

    /// Sets or replaces a value.
    ///
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for a key that is empty, contains NUL or has more
    ///   than 256 characters (UTF-16 units), and for a value that cannot be encoded or has more than 4,000,000 bytes as
    ///   JSON.
    public func set(_ value: some Encodable, for key: String) throws(ClientServiceError) {
        try ServiceLimits.check(key: key)
        let body: Data
        do { body = try JSONEncoder().encode(value) } catch {
            throw ClientServiceError(.invalidArgument, "the value for \(key) cannot be encoded: \(error)")
        }
        guard body.count <= ServiceLimits.valueBytes else {
            throw ClientServiceError(
                .invalidArgument,
                "the value for \(key) has \(body.count) bytes; the limit is \(ServiceLimits.valueBytes)")
        }
        try store.write("writing a value") { items in try items.put(body, .values, owner: owner, key: key) }
    }

    /// Reads a value; nil when there is none.
    ///
    /// - Throws: `ClientServiceError`: `store`; `wrongType` when the stored value has another type.
    public func value<Value: Decodable>(
        _ key: String, as type: Value.Type = Value.self
    ) throws(ClientServiceError) -> Value? {
        let body = try store.read("reading a value") { items in try items.body(.values, owner: owner, key: key) }
        guard let body else { return nil }
        do { return try JSONDecoder().decode(Value.self, from: body) } catch {
            throw ClientServiceError(.wrongType, "the value stored for \(key) is not of type \(Value.self)")
        }
    }

    /// The keys that start with a prefix, sorted by their bytes.
    ///
    /// - Throws: `ClientServiceError.store`.
    public func keys(prefix: String = "") throws(ClientServiceError) -> [String] {
        try store.read("reading the keys") { items in try items.keys(.values, owner: owner, prefix: prefix) }
    }

    /// Removes values in one transaction. A missing key is not an error.
    ///
    /// - Throws: `ClientServiceError.store`; nothing is removed then.
    public func remove(_ keys: [String]) throws(ClientServiceError) {
        try store.write("removing values") { items in
            for key in keys { try items.remove(.values, owner: owner, key: key) }
        }
    }

    /// Removes the values whose keys start with a prefix, in one transaction; empty: all.
    ///
    /// - Throws: `ClientServiceError.store`; nothing is removed then.
    public func remove(prefix: String) throws(ClientServiceError) {
        try store.write("removing values") { items in
            for key in try items.keys(.values, owner: owner, prefix: prefix) {
                try items.remove(.values, owner: owner, key: key)
            }
        }
    }
}
