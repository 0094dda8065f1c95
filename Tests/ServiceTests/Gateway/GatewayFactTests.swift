import BusMessages
import DeviceProtocol
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("Facts of a gateway")
struct GatewayFactTests {
    private func identity(version: String = "1.2", user: String? = "u1") -> SessionIdentity {
        SessionIdentity(
            instanceID: InstanceID("a"), deviceID: DeviceID("d1"), storeID: StoreID("s"),
            traits: DeviceTraits(operatingSystem: .android, appVersion: version, slot: DeviceSlot(number: 0)),
            isForeground: true, isSimple: false,
            connect: SessionIdentity.Connect(), subscriptions: SessionIdentity.Subscriptions(),
            userID: user.map { UserID($0) }, sessionID: "",
            bindNumber: 1)
    }

    private func fact(
        _ kind: Mss_Device_V1_ChannelKind = .user, to identity: SessionIdentity, oplogs: [Int64] = [7, 8]
    ) -> Mss_Bus_V1_HandedOut? {
        let batch = OutboundBatch(
            batch: .with { $0.kind = kind }, oplogs: oplogs.map { OplogID($0) }, channelID: 5)
        let fact = Mss_Bus_V1_Fact(handedOut: batch, to: identity, at: WallTime(milliseconds: 9))
        #expect(fact.map { $0.atMs == 9 && $0.channelID == 5 } ?? true)
        return fact?.handedOut
    }

    @Test("S2: a hand-out names the device, and for global user pushes the bound user")
    func handedOut() {
        let own = fact(to: identity())
        #expect(own?.deviceID == "d1" && own?.oplogIds == [7, 8] && own?.userID == "")
        #expect(own?.operatingSystem == .android && own?.appVersion == "1.2")
        #expect(fact(.globalUser, to: identity())?.userID == "u1")
        #expect(fact(.globalDevice, to: identity())?.userID == "")
        #expect(fact(to: identity(), oplogs: []) == nil)
    }

    @Test(
        "an app version that cannot be compared, or is too long, counts as none",
        arguments: [
            ("1.2.3", "1.2.3"), ("", ""), ("1.2-beta", ""), ("v1", ""), ("1..2", ""),
            (String(repeating: "1", count: 32), String(repeating: "1", count: 32)),
            (String(repeating: "1", count: 33), ""),
        ])
    func versions(said: String, counted: String) {
        #expect(fact(to: identity(version: said))?.appVersion == counted)
    }

    @Test("each instance's sessions are reported once a minute, and once more when the last has ended")
    func connected() {
        var minutes = ConnectedMinutes(gatewayID: "g")
        func facts(at milliseconds: Int64, _ counts: [String: Int]) -> [String] {
            let counts = Dictionary(uniqueKeysWithValues: counts.map { (InstanceID($0.key), $0.value) })
            return minutes.facts(at: WallTime(milliseconds: milliseconds)) { counts }.map { fact in
                #expect(fact.connected.gatewayID == "g" && fact.channelID == 0)
                return "\(fact.atMs) \(fact.connected.instanceID) \(fact.connected.devices)"
            }
        }
        #expect(facts(at: 65_000, ["a": 2, "b": 0]) == ["60000 a 2"])
        #expect(facts(at: 119_999, ["a": 3, "b": 1]) == [])
        #expect(facts(at: 120_000, ["a": 3, "b": 1]) == ["120000 a 3", "120000 b 1"])
        #expect(facts(at: 180_500, ["a": 0, "b": 1]) == ["180000 a 0", "180000 b 1"])
        #expect(facts(at: 240_000, ["a": 0, "b": 1]) == ["240000 b 1"])
    }

    @Test("sessions are counted by instance while they exist")
    func counts() throws {
        let bench = try HandlerBench([SessionBench.configuration("B")])
        let instance = SessionBench.instance.id
        #expect(bench.runtime.sessionsByInstance() == [instance: 0])
        try bench.open([])
        #expect(bench.runtime.sessionsByInstance() == [instance: 1])
        bench.runtime.registry.remove(1)
        #expect(bench.runtime.sessionsByInstance() == [instance: 0])
    }

    @Test("the hand-out of a tombstone is not a fact")
    func tombstone() {
        var bench = SessionBench()
        bench.open([("B", 3, 0, 0)])
        bench.machine.write(
            bench.handle(.noticed(SessionBench.notice("B", channel: 3, after: 0, ids: [1]))))
        var tombstone = SessionBench.oplog(2)
        tombstone.recalls = OplogID(1)
        let address = ChannelAddress(target: SessionBench.target, bizType: BizType("B"))
        let notice = ChannelNotice(
            channelID: 3, address: address, after: OplogID(1), upto: OplogID(3),
            entries: [tombstone, SessionBench.oplog(3)])
        let actions = bench.handle(.noticed(notice))
        let sent = actions.flatMap { action -> [Int64] in
            guard case .push(let batch, _, _) = action else { return [] }
            return batch.entries.map(\.oplogID)
        }
        let handedOut = actions.flatMap { action -> [OplogID] in
            guard case .push(_, let oplogs, _) = action else { return [] }
            return oplogs
        }
        #expect(sent == [2, 3])
        #expect(handedOut == [OplogID(3)])
    }
}
