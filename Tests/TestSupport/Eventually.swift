/// A test's own failure, with what was expected.
package struct Failure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// Waits for a condition; the only place where tests let time pass.
///
/// - Parameter limit: what is normal; a busy machine is given three times that.
/// - Throws: `Failure` with the words when the condition does not hold in time.
package func eventually(
    _ what: @autoclosure () -> String, within limit: Duration, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit * 3
    while true {
        if try await condition() { return }
        guard ContinuousClock.now < deadline else { throw Failure("not within \(limit): \(what())") }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// What the body gives, which waits for something.
///
/// - Parameter limit: what is normal; a busy machine is given three times that.
/// - Throws: `Failure` with the words when nothing comes in time.
package func inTime<Value: Sendable>(
    _ limit: Duration, _ what: String, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try? await Task.sleep(for: limit * 3)
            return nil
        }
        defer { group.cancelAll() }
        guard case .some(.some(let value)) = try await group.next() else {
            throw Failure("not within \(limit): \(what)")
        }
        return value
    }
}

/// The value, or a failure that says what is missing.
package func requireValue<Value>(_ value: Value?, _ what: String) throws -> Value {
    guard let value else { throw Failure(what) }
    return value
}
