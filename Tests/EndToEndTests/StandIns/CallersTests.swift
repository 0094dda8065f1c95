import TestSupport
import Testing

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
