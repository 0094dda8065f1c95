import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import Testing

@testable import Torture

/// A table of data that the misbehaving device must not be sent.
struct MisbehavingDeviceCheckerTests {
    private static let instance = TortureWorld.instances[0]

    private static func push(
        _ bizType: String, bind: UInt32, _ target: HistoryTarget, as name: String = "push-1"
    ) -> Mss_Device_V1_Packet {
        .with {
            $0.push.batches = [
                .with {
                    $0.bizType = bizType
                    $0.bindNumber = bind
                    $0.entries = [
                        .with {
                            $0.thirdMessageID = name
                            $0.payload = .init(target.payload(of: name).utf8)
                        }
                    ]
                }
            ]
        }
    }

    private static func pong(_ number: UInt64) -> Mss_Device_V1_Packet { .with { $0.pong.number = number } }

    private static func judge() -> MisbehavingDeviceChecker {
        var judge = MisbehavingDeviceChecker(instance: instance, device: "misbehaving-1")
        judge.bound(1, user: "ann", session: "s1")
        judge.bound(2, user: "bob", session: "s2")
        return judge
    }

    private static func target(_ kind: TortureWorld.Kind, _ name: String, in instance: String = instance)
        -> HistoryTarget
    {
        TortureWorld.target(instance, kind, name)
    }

    @Test("The states of its user's orders are permitted, another user's and another tenant's are not")
    func states() {
        func isStranger(_ state: String, bind: UInt32) -> Bool {
            var judge = Self.judge()
            let packet = Mss_Device_V1_Packet.with {
                $0.push.batches = [
                    .with {
                        $0.bizType = TortureWorld.orders
                        $0.bindNumber = bind
                        $0.entries = [.with { $0.payload = .init(state.utf8) }]
                    }
                ]
            }
            return !judge.received(packet).isEmpty
        }
        let state = TortureState.json(after: "4711", on: "ann-3", of: Self.instance)
        #expect(TortureState.operation(in: state, of: "ann", Self.instance) == "4711")
        #expect(!isStranger(state, bind: 1))
        #expect(isStranger(state, bind: 2) && isStranger(state, bind: 7) && isStranger("{}", bind: 1))
        #expect(isStranger(TortureState.json(after: "4711", on: "ann-3", of: "torture-2"), bind: 1))
    }

    @Test("Its own, its user's and global data are permitted")
    func ownData() {
        var judge = Self.judge()
        for packet in [
            Self.push("CHAT", bind: 1, Self.target(TortureWorld.chat, "ann")),
            Self.push("CHAT", bind: 2, Self.target(TortureWorld.chat, "bob")),
            Self.push("LOCK", bind: 0, Self.target(TortureWorld.lock, "misbehaving-1")),
            Self.push("NEWS", bind: 0, Self.target(TortureWorld.news, "")),
        ] { #expect(judge.received(packet).isEmpty) }
    }

    @Test(
        "No data of others is permitted",
        arguments: [
            push("CHAT", bind: 1, target(TortureWorld.chat, "bob")),
            push("CHAT", bind: 1, target(TortureWorld.chat, "ann", in: TortureWorld.instances[1])),
            push("CHAT", bind: 1, target(TortureWorld.checked, "ann")),
            push("CHAT", bind: 3, target(TortureWorld.chat, "ann")),
            push("LOCK", bind: 0, target(TortureWorld.lock, "misbehaving-2")),
            push("OTHER", bind: 1, target(TortureWorld.chat, "ann")),
        ])
    func strangers(packet: Mss_Device_V1_Packet) {
        var judge = Self.judge()
        #expect(judge.received(packet).count == 1)
    }

    @Test("Checked data is stale after the line, on the ended session alone")
    func lines() {
        var judge = Self.judge()
        let checked = Self.push("CHECKED", bind: 1, Self.target(TortureWorld.checked, "ann"))
        judge.expectNoCheckedData(on: "s1", afterPong: 77)
        #expect(judge.received(checked).isEmpty)
        #expect(judge.received(Self.pong(76)).isEmpty)
        #expect(judge.received(checked).isEmpty)
        #expect(judge.received(Self.pong(77)).isEmpty)
        #expect(judge.received(checked) == [.stale(bizType: "CHECKED", session: "s1")])
        #expect(judge.received(Self.push("CHAT", bind: 1, Self.target(TortureWorld.chat, "ann"))).isEmpty)
        #expect(judge.received(Self.push("CHECKED", bind: 2, Self.target(TortureWorld.checked, "bob"))).isEmpty)
    }

    @Test("H7, D11: after a pong, no oplog follows that was recalled or expired before the ping")
    func breaches() {
        let target = Self.target(TortureWorld.chat, "ann")
        let packet = Self.push("CHAT", bind: 1, target)
        for (end, breach) in [
            (TorturePushLedger.End(recalledAt: .seconds(10)), SocketBarrier.Breach.recalled),
            (TorturePushLedger.End(validUntil: .seconds(10) - HistoryChecker.clockTolerance), .expired),
        ] {
            var judge = MisbehavingDeviceChecker(instance: Self.instance, device: "misbehaving-1") {
                $0 == "push-1" ? end : nil
            }
            judge.bound(1, user: "ann", session: "s1")
            judge.pinged(1, at: .seconds(9))
            judge.pinged(2, at: .seconds(10))
            #expect(
                judge.received(Self.pong(1)).isEmpty && judge.received(packet).isEmpty, "it may have been under way")
            #expect(judge.received(Self.pong(2)).isEmpty)
            #expect(judge.received(packet) == [.breach(breach, push: "push-1")])
            #expect(judge.received(Self.push("CHAT", bind: 1, target, as: "push-2")).isEmpty)
        }
    }

    @Test("A tombstone is no data")
    func tombstone() {
        var judge = Self.judge()
        let packet = Mss_Device_V1_Packet.with {
            $0.push.batches = [
                .with {
                    $0.bizType = "CHECKED"
                    $0.bindNumber = 1
                    $0.entries = [.with { $0.recalls = 1 }]
                }
            ]
        }
        #expect(judge.received(packet).isEmpty)
    }
}
