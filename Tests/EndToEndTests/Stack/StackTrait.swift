import Testing

/// Starts one stack around a suite and stops it afterwards.
struct StackTrait: SuiteTrait, TestScoping {
    @TaskLocal static var stack: Stack?

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let stack = try await Stack.start()
        defer { stack.stop() }
        try await Self.$stack.withValue(stack) { try await function() }
    }
}

extension Trait where Self == StackTrait {
    /// Gives the suite's tests a running stack, as `StackTrait.stack`.
    static var stack: Self { Self() }
}
