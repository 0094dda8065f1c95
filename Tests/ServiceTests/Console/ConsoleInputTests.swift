import Foundation
import SyncModel
import Testing

@testable import Console

@Suite("Console: input of forms") struct ConsoleInputTests {
    private func read(_ json: String, old: SyncConfiguration? = nil) throws -> SyncConfiguration {
        try JSONDecoder().decode(ConfigurationInput.self, from: Data(json.utf8))
            .configuration(of: InstanceID("i"), old: old)
    }

    private func field(_ json: String) -> String? {
        do {
            _ = try read(json)
            return nil
        } catch {
            return (error as? ConsoleFault)?.field
        }
    }

    @Test("C3: the smallest input has the page's default values") func preselection() throws {
        let made = try read(#"{"bizType":" UCHAT ","description":"chat"}"#)
        #expect(made.bizType.text == "UCHAT" && made.kind == .user && made.isMultiDevice && made.isPersistent)
        #expect(made.repush == .threshold(100) && !made.checksSession && made.isOnline && !made.isImmediate)
    }

    @Test("C3: each wrong field is named") func faults() {
        #expect(field(#"{"description":"d"}"#) == "bizType")
        #expect(field(#"{"bizType":"A","description":" "}"#) == "description")
        #expect(field(#"{"bizType":"..","description":"d"}"#) == "bizType")
        #expect(field(#"{"bizType":"a b","description":"d"}"#) == "bizType")
        #expect(field(#"{"bizType":"\#(String(repeating: "A", count: 31))","description":"d"}"#) == "bizType")
        #expect(field(#"{"bizType":"A","description":"d","scope":"all"}"#) == "scope")
        #expect(field(#"{"bizType":"A","description":"d","target":"all"}"#) == "target")
        #expect(field(#"{"bizType":"A","description":"d","threshold":0}"#) == "threshold")
        #expect(field(#"{"bizType":"A","description":"d","threshold":1001}"#) == "threshold")
        #expect(field(#"{"bizType":"A","description":"d","repush":"some"}"#) == "repush")
        let checked = #"{"bizType":"A","description":"d","checkSession":true,"verdictLifetimeSeconds":-1}"#
        #expect(field(checked) == "verdictLifetimeSeconds")
        let long = String(repeating: "x", count: 201)
        #expect(field(#"{"bizType":"A","description":"\#(long)"}"#) == "description")
    }

    @Test("C3: fields that do not belong to a choice are ignored") func choices() throws {
        let global = try read(
            #"{"bizType":"A","description":"d","scope":"global","persistent":false,"multiDevice":false}"#)
        #expect(global.kind == .globalUser && global.isPersistent && global.isMultiDevice)
        let device = try read(
            #"{"bizType":"A","description":"d","target":"device","multiDevice":true,"checkSession":true}"#)
        #expect(device.kind == .device && !device.isMultiDevice && !device.checksSession)
        let fleeting = try read(#"{"bizType":"A","description":"d","persistent":false,"threshold":7}"#)
        #expect(!fleeting.isPersistent && fleeting.repush == .all)
        let late = try read(#"{"bizType":"A","description":"d","immediate":true,"verdictLifetimeSeconds":5}"#)
        #expect(!late.isImmediate && late.verdictLifetime == nil)
    }

    @Test("C4: a changed configuration keeps Sync ID and target; its scope can change")
    func changes()
        throws
    {
        let old = try read(#"{"bizType":"A","description":"d","target":"device"}"#)
        let checked = try read(
            #"{"bizType":"A","description":"d","checkSession":true,"verdictLifetimeSeconds":5,"repush":"all","multiDevice":false}"#
        )
        let new = try read(
            #"{"bizType":"B","description":"new","scope":"global","target":"user","revision":3}"#, old: old)
        #expect(new.bizType.text == "A" && new.kind == .globalDevice && new.description == "new" && new.revision == 0)
        let single = try read(#"{"bizType":"A","description":"d","multiDevice":false,"persistent":false}"#)
        let global = try read(#"{"scope":"global"}"#, old: single)
        #expect(global.kind == .globalUser && global.isMultiDevice && global.isPersistent)
        let back = try read(#"{"scope":"appointed","multiDevice":false}"#, old: global)
        #expect(back.kind == .user && !back.isMultiDevice && back.isPersistent)
        #expect(try read(#"{"description":"e"}"#, old: global).kind == .globalUser, "what is not named stays")
        let part = try read(#"{"description":"only this","revision":1}"#, old: checked)
        #expect(part.checksSession && part.repush == .all && part.verdictLifetime == .seconds(5))
        #expect(!part.isMultiDevice && part.description == "only this")
    }

    @Test("SEC14: only switching signatures off needs the password")
    func signatures() throws {
        var old = Instance(
            id: InstanceID("a_b"), name: "n", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
        for (was, given, asks) in [
            (true, #"{"requiresSignature":false}"#, true), (true, #"{"requiresSignature":true}"#, false),
            (true, #"{"name":"other"}"#, false), (false, #"{"requiresSignature":true}"#, false),
            (false, #"{"requiresSignature":false}"#, false),
        ] {
            old.requiresSignature = was
            let new = try JSONDecoder().decode(InstanceInput.self, from: Data(given.utf8)).instance(old)
            #expect(InstanceRoutes.asksForPassword(old, new) == asks, "\(was) \(given)")
        }
    }

    @Test("C6: a push's form becomes the API's call") func pushes() throws {
        func call(_ json: String, persistent: Bool = true) throws -> PushInput.Call {
            var configuration = try read(#"{"bizType":"A","description":"d"}"#)
            configuration.isPersistent = persistent
            return try JSONDecoder().decode(PushInput.self, from: Data(json.utf8))
                .call(of: configuration, at: WallTime(milliseconds: 1_000))
        }
        let base = #""bizType":"A","linkToken":" u ","payload":"p","#
        let both = try call("{\(base)\"thirdMsgId\":\"t\",\"iOS\":true,\"android\":true,\"validDays\":2}")
        #expect(both.osType == nil && both.linkToken == "u" && both.validTimeEnd == 172_801_000)
        #expect(try call("{\(base)\"thirdMsgId\":\"t\",\"iOS\":true,\"android\":false}").osType == "iOS")
        #expect(try call("{\(base)\"iOS\":false,\"android\":true}", persistent: false).osType == "Android")
        #expect(try call("{\(base)\"iOS\":true}", persistent: false).thirdMsgId.hasPrefix("console-"))
        for (json, field) in [
            ("{\(base)\"iOS\":true}", "thirdMsgId"), ("{\(base)\"thirdMsgId\":\"t\",\"validDays\":31}", "validDays"),
            ("{\(base)\"thirdMsgId\":\"t\",\"iOS\":false,\"android\":false}", "iOS"),
            (#"{"bizType":"A","linkToken":"u","thirdMsgId":"t","payload":""}"#, "payload"),
        ] {
            let fault = #expect(throws: ConsoleFault.self) { try call(json) }
            #expect(fault?.field == field)
        }
    }
}
