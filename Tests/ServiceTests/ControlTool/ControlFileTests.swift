import BusMessages
import Foundation
import ServiceKit
import SyncModel
import Testing

@testable import ControlTool

@Suite("Control files")
struct ControlFileTests {
    /// An instance's entry with these members. Its id is `w_app` when the members have none.
    private func entry(_ members: [String: Any] = [:]) throws -> ControlFile.InstanceEntry {
        let all = members.merging(["instanceId": "w_app"]) { given, _ in given }
        let data = try JSONSerialization.data(withJSONObject: all)
        return try JSONDecoder().decode(ControlFile.InstanceEntry.self, from: data)
    }

    @Test(
        "an impossible number is refused, and not read as none or another one",
        arguments: ["requestsPerSecond", "pushesPerDay", "retentionDays", "sessionLength", "verdictLifetimeSeconds"])
    func impossible(name: String) throws {
        #expect(throws: (any Error).self) { try Instance(entry([name: -5])).validatedMessage }
        #expect(try Instance(entry()).validatedMessage.enabled)
    }

    @Test("an exported file is applied unchanged, for every kind of configuration and instance") func export() throws {
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

    @Test("V2: a mobile gateway's ids are never overwritten, and never guessed") func gatewayIDs() throws {
        var existing = Instance(try entry(["validatorMode": "mgs", "validatorUrl": "https://t/"]))
        existing.validatorForm = .mobileGateway(.init(appID: "APP", workspaceID: "space", wrapsBody: true))
        let exported = ControlFile.InstanceEntry(existing)
        #expect(exported.gatewayAppId == "APP" && exported.gatewayWorkspaceId == "space")
        #expect(Instance(exported).validatorForm == existing.validatorForm, "exported and applied to another service")
        let kept = Instance(try entry(["validatorMode": "mgs"]), over: existing)
        #expect(kept.validatorForm == existing.validatorForm, "a file that does not name them")
        func form(
            _ id: String, _ mode: ControlFile.InstanceEntry.ValidatorMode?, appID: String? = nil,
            over existing: ValidatorForm?
        ) -> ValidatorForm {
            ControlFile.InstanceEntry.validatorForm(
                of: InstanceID(id), mode: mode, appID: appID, workspaceID: nil, wrapsBody: nil, over: existing)
        }
        #expect(form("w_app", nil, over: existing.validatorForm) == existing.validatorForm, "instance set --name")
        #expect(form("w_app", nil, over: .http) == .http)
        #expect(form("w_app", .http, over: existing.validatorForm) == .http)
        #expect(
            form("w_app", nil, appID: "NEW", over: existing.validatorForm)
                == .mobileGateway(.init(appID: "NEW", workspaceID: "space", wrapsBody: true)))
        #expect(form("w_app", .mgs, over: .http) == .mobileGateway(.init(appID: "app", workspaceID: "w")))
        var doubtful = Instance(try entry(["instanceId": "w_x_app", "validatorMode": "mgs"]))
        #expect(doubtful.fault != nil, "where the id is split is not known: both are to be named")
        doubtful.validatorForm = .mobileGateway(.init(appID: "x_app", workspaceID: "w"))
        #expect(doubtful.fault == nil)
        #expect(MetaConfigFile(doubtful, server: "h", port: 1).text.contains(#""appId" : "x_app""#))
        doubtful.validatorForm = .http
        #expect(!MetaConfigFile(doubtful, server: "h", port: 1).text.contains("appId"))
    }

    @Test("an instance's protections stay on when the file omits them, and a disabled one stays disabled")
    func protection() throws {
        var existing = Instance(try entry(["requireSignature": true, "bindDevices": true, "requestsPerSecond": 5]))
        existing.isEnabled = false
        let kept = Instance(try entry(), over: existing)
        #expect(kept.requiresSignature && kept.bindsDevices && kept.limits.requestsPerSecond == 5 && !kept.isEnabled)
        let freed = Instance(try entry(["requireSignature": false, "requestsPerSecond": 0]), over: existing)
        #expect(!freed.requiresSignature && freed.limits.requestsPerSecond == nil)
    }
}
