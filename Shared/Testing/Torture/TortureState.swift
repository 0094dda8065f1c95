/// An entity's new state after an operation in a torture run. It names its owner.
enum TortureState {
    /// The state as JSON text.
    static func json(after id: String, on entity: String, of instance: String) -> String {
        "\"\(owner(instance, entity)) \(id)\""
    }

    /// The operation that led to the state. The value is nil if the state belongs to another user or cannot be parsed.
    static func operation(in payload: String, of user: String, _ instance: String) -> String? {
        let parts = payload.filter { $0 != "\"" }.split(separator: " ")
        guard parts.count == 2, parts[0].hasPrefix(owner(instance, "\(user)-")) else { return nil }
        return String(parts[1])
    }

    private static func owner(_ instance: String, _ entity: String) -> String { "\(instance)/\(entity)" }
}
