import Foundation
import SyncModel
import Testing

@Suite("Configurations")
struct SyncConfigurationTests {
    @Test("C2: a kind is its scope and its target", arguments: ChannelKind.allCases) func kinds(kind: ChannelKind) {
        #expect(ChannelKind(kind.scope, kind.target) == kind)
        #expect((kind.scope == .global) == kind.isGlobal && (kind.target == .user) == kind.needsUser)
        for other in [kind.with(.appointed), kind.with(.global)] { #expect(other.hasSameTarget(as: kind)) }
        #expect(kind.with(kind.scope) == kind)
    }

    @Test("C3: a re-push mode has one form as text, as JSON and as a number") func repush() throws {
        for (mode, text, json, newest) in [
            (RepushMode.all, "all", #""all""#, 0), (.threshold(1), "1", "1", 1),
            (.threshold(1_000), "1000", "1000", 1_000),
        ] {
            #expect(RepushMode(text) == mode && mode.text == text)
            #expect(RepushMode(newest: newest) == mode && mode.newest == newest)
            #expect(try JSONDecoder().decode(RepushMode.self, from: Data(json.utf8)) == mode)
            #expect(try String(decoding: JSONEncoder().encode(mode), as: UTF8.self) == json)
        }
        for wrong in ["", "ALL", "0", "1001", "-1", "1.5"] { #expect(RepushMode(wrong) == nil) }
        for wrong in [#""some""#, "0", "1001", "null", "true"] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(RepushMode.self, from: Data(wrong.utf8)) }
        }
    }

    @Test("C3: a new configuration is valid for every kind", arguments: ChannelKind.allCases)
    func standard(kind: ChannelKind) {
        let made = SyncConfiguration.standard(instanceID: InstanceID("w_app"), bizType: BizType("CHAT"), kind: kind)
        #expect(made.fault == nil && made.isOnline && made.isPersistent && !made.checksSession && !made.isImmediate)
        #expect(made.isMultiDevice == kind.needsUser && made.repush == .threshold(Limits.defaultThreshold))
    }
}
