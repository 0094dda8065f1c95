/// The tenant's new state after an operation in a torture run, which says whose it is.
enum TortureState {
    /// As the tenant gives it: a JSON text.
    static func json(after id: String, on entity: String, of instance: String) -> String {
        "\"\(owner(instance, entity)) \(id)\""
    }

    /// The operation that a state came after; nil: it is not this user's, or none at all.
    static func operation(in payload: String, of user: String, _ instance: String) -> String? {
        let parts = payload.filter { $0 != "\"" }.split(separator: " ")
        guard parts.count == 2, parts[0].hasPrefix(owner(instance, "\(user)-")) else { return nil }
        return String(parts[1])
    }

    private static func owner(_ instance: String, _ entity: String) -> String { "\(instance)/\(entity)" }
}
