import BusMessages
import Foundation
import SyncModel
import Testing

@testable import ControlTool

@Suite("Control files")
struct ControlFileTests {
    private func entry(_ members: [String: Any] = [:]) throws -> ControlFile.InstanceEntry {
        let data = try JSONSerialization.data(withJSONObject: members.merging(["instanceId": "w_app"]) { $1 })
        return try JSONDecoder().decode(ControlFile.InstanceEntry.self, from: data)
    }

    @Test(
        "a number that cannot be is refused, not taken for none or for another",
        arguments: ["requestsPerSecond", "pushesPerDay", "retentionDays", "sessionLength", "verdictLifetimeSeconds"])
    func impossible(name: String) throws {
        #expect(throws: (any Error).self) { try Instance(entry([name: -5])).soundBus }
        #expect(try Instance(entry()).soundBus.enabled)
    }

    @Test("what protects an instance stays on where the file does not name it, and a disabled one stays disabled")
    func protection() throws {
        var existing = Instance(try entry(["requireSignature": true, "bindDevices": true, "requestsPerSecond": 5]))
        existing.isEnabled = false
        let kept = Instance(try entry(), over: existing)
        #expect(kept.requiresSignature && kept.bindsDevices && kept.limits.requestsPerSecond == 5 && !kept.isEnabled)
        let freed = Instance(try entry(["requireSignature": false, "requestsPerSecond": 0]), over: existing)
        #expect(!freed.requiresSignature && freed.limits.requestsPerSecond == nil)
    }
}
