import TestSupport
import Testing

extension RunningSystem {
    @Suite("Canaries")
    struct CanaryTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        @Test(
            "I6, I7: users, sessions and connections change all the time; no data reaches others, or comes too late")
        func canaries() async throws {
            let campaign = CanaryCampaign(stack)
            try await campaign.run(
                devices: 40, binds: TestGear.count(500, soak: 100_000),
                atLeast: .seconds(TestGear.count(25, soak: 3_600)))
            let tally = campaign.tally
            print("canaries: \(tally); the tenant was asked \(campaign.tenant.questions) times")
            #expect(campaign.faults == [])
            // The run must have delivered checked, unchecked and global data.
            #expect(campaign.missingTypes == [])
            #expect(tally.received.lines > 20)
            #expect(tally.received.invalidStates > 0)
            #expect(tally.revocations > 0)
            #expect(tally.takeovers > 0)
        }
    }
}
