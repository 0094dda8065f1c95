/// A failure of a test, with the expectation that was not met.
package struct Failure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// Waits for a condition. Tests wait for time only in this file.
///
/// - Parameters:
///   - expectation: the text of the failure.
///   - limit: the normal time. The function waits three times as long for a busy machine.
/// - Throws: `Failure` when the condition does not hold in time.
package func eventually(
    _ expectation: @autoclosure () -> String, within limit: Duration, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit * 3
    while true {
        if try await condition() { return }
        guard ContinuousClock.now < deadline else { throw Failure("not within \(limit): \(expectation())") }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// Returns the result of the body within a time limit.
///
/// - Parameters:
///   - limit: the normal time. The function waits three times as long for a busy machine.
///   - expectation: the text of the failure.
/// - Throws: `Failure` when the body does not return in time.
package func inTime<Value: Sendable>(
    _ limit: Duration, _ expectation: String, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try? await Task.sleep(for: limit * 3)
            return nil
        }
        defer { group.cancelAll() }
        guard case .some(.some(let value)) = try await group.next() else {
            throw Failure("not within \(limit): \(expectation)")
        }
        return value
    }
}

/// Returns the value, or throws `Failure` with this text when it is nil.
package func requireValue<Value>(_ value: Value?, _ message: String) throws -> Value {
    guard let value else { throw Failure(message) }
    return value
}
