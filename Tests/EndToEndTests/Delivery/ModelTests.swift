import TestSupport
import Testing

extension SecondSteadySystem {
    @Suite("The rule book and the running system agree")
    struct ModelTests {
        @Test("D6 to D12, D17, D18, H1: over random operations of several users and devices")
        func agreement() async throws {
            let stack = try Stack.running
            let database = stack.database()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for seed in 1...16 {
                    group.addTask {
                        try await ModelComparison(stack, database: database, seed: UInt64(seed))
                            .run(operations: TestGear.count(400, soak: 1_300))
                    }
                }
                try await group.waitForAll()
            }
            await database.close()
        }
    }
}
