import TestSupport
import Testing

/// Backends that push at the same time while something else is done to the service.
struct Callers: Sendable {
    let count: Int

    /// Runs `meanwhile` and the callers, until both are done. A failure of either ends both.
    ///
    /// - Parameter push: makes one push of a caller, whose pushes are numbered from 0. Returns whether the caller has
    ///   done enough; it goes on until `meanwhile` has ended, too.
    func run(
        meanwhile: @escaping @Sendable () async throws -> Void,
        push: @escaping @Sendable (_ caller: Int, _ number: Int) async throws -> Bool
    ) async throws {
        let isUndisturbed = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await meanwhile()
                isUndisturbed.set()
            }
            for caller in 0..<count {
                group.addTask {
                    var (number, isEnough) = (0, false)
                    while !(isEnough && isUndisturbed.isSet) {
                        try Task.checkCancellation()
                        isEnough = try await push(caller, number)
                        number += 1
                    }
                }
            }
            // `waitForAll` would wait for the callers after a failure of `meanwhile`.
            while try await group.next() != nil {}
        }
    }
}

@Suite("Callers of campaigns")
struct CallersTests {
    @Test("callers end when what is done meanwhile fails", .timeLimit(.minutes(1)))
    func failure() async throws {
        await #expect(throws: Failure.self) {
            try await Callers(count: 2).run(
                meanwhile: { throw Failure("it is not ready in time") },
                push: { _, _ in
                    await Task.yield()
                    return true
                })
        }
    }
}
