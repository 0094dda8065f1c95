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

    @Test("what is exported is applied as it was, of every kind of configuration and instance") func export() throws {
        let file = """
            {"instances": [
              {"instanceId": "w_a", "name": "A", "validatorUrl": "https://t/", "validatorMode": "mgs",
               "validatorWrapsBody": true, "verdictLifetimeSeconds": 7, "retentionDays": 3, "requireSignature": true,
               "requestsPerSecond": 5, "pushesPerDay": 6, "bindDevices": true, "sessionLength": 200, "enabled": false},
              {"instanceId": "w_b"}],
             "configurations": [
              {"instanceId": "w_a", "bizType": "U", "description": "d", "scope": "appointed", "target": "user",
               "multiDevice": false, "persistent": false, "repush": "all", "checkSession": true,
               "verdictLifetimeSeconds": 0, "online": false},
              {"instanceId": "w_a", "bizType": "D", "description": "", "scope": "appointed", "target": "device",
               "repush": 9},
              {"instanceId": "w_a", "bizType": "G", "description": "", "scope": "global", "target": "user",
               "immediate": true},
              {"instanceId": "w_a", "bizType": "H", "description": "", "scope": "global", "target": "device"}]}
            """
        func read(_ data: Data) throws -> (instances: [Instance], configurations: [SyncConfiguration]) {
            let content = try JSONDecoder().decode(ControlFile.self, from: data)
            return (
                (content.instances ?? []).map { Instance($0) },
                (content.configurations ?? []).map { SyncConfiguration($0) }
            )
        }
        let first = try read(Data(file.utf8))
        #expect(first.instances.count == 2 && !first.instances[0].isEnabled && first.configurations.count == 4)
        let again = try read(ExportCommand.json(first.instances, first.configurations))
        #expect(again.instances == first.instances && again.configurations == first.configurations)
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
