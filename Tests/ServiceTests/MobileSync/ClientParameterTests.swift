import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel
import Testing

@testable import MobileSync

@Suite("SyncClient: subscription parameters") struct ClientParameterTests {
    private let now = ContinuousClock.now

    private func parameter(_ name: String, _ value: Double?) -> DeviceParameter {
        DeviceParameter(bizType: BizType("B"), name: name, value: value.map { .number($0) })
    }

    /// Runs the body with a function that opens the same store each time.
    private func withStore(_ body: (() throws -> LocalStore) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "store-\(UUID().uuidString).sqlite"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        try body { try LocalStore(path: path, instanceID: "app", deviceID: "d") }
    }

    @Test("values survive a restart, each for its user; a server value is pending until the reply")
    func store() throws {
        try withStore { open in
            do {
                let store = try open()
                try store.parameters.set(parameter("a", 1), isServer: false, ofUser: "u")
                try store.parameters.set(parameter("a", 2), isServer: true, ofUser: "u")
                try store.parameters.set(parameter("a", 3), isServer: false, ofUser: nil)
            }
            let store = try open()
            #expect(
                try store.parameters.all(ofUser: "u") == [
                    .init(parameter: parameter("a", 1), isServer: false, isPending: false),
                    .init(parameter: parameter("a", 2), isServer: true, isPending: true),
                ])
            #expect(try store.parameters.all(ofUser: nil).map(\.parameter.value) == [.number(3)])
            #expect(try store.parameters.all(ofUser: "v").isEmpty)
            try store.parameters.set(parameter("a", nil), isServer: false, ofUser: "u")
            #expect(try store.parameters.all(ofUser: "u").map(\.isServer) == [true])
        }
    }

    @Test("ENT2: a user's server values are pending until the reply, also for hasPendingOperations of entities")
    func pending() throws {
        try withStore { open in
            let store = try open()
            try store.parameters.set(parameter("a", 1), isServer: false, ofUser: "u")
            #expect(try !store.outbox.hasPendingParameters(ofUser: "u", of: ["B"]))
            try store.parameters.set(parameter("a", 2), isServer: true, ofUser: "u")
            #expect(try store.outbox.hasPendingParameters(ofUser: "u", of: ["A", "B"]))
            #expect(try !store.outbox.hasPendingParameters(ofUser: "u", of: ["A"]))
            #expect(try !store.outbox.hasPendingParameters(ofUser: "v", of: ["B"]))
            try store.parameters.answered([parameter("a", 2)], isKept: true, ofUser: "u")
            #expect(try !store.outbox.hasPendingParameters(ofUser: "u", of: ["B"]))
        }
    }

    @Test("the server's values replace the known ones, but not pending ones; refused ones are removed")
    func server() throws {
        try withStore { open in
            let store = try open()
            func wire(_ name: String, _ value: String) -> Mss_Device_V1_Parameter {
                .with {
                    $0.bizType = "B"
                    $0.name = name
                    $0.value = value
                }
            }
            func known() throws -> [String] {
                try store.parameters.all(ofUser: "u").map {
                    "\($0.parameter.name)=\($0.parameter.value?.json ?? "-")\($0.isPending ? "?" : "")"
                }
            }
            try store.parameters.replaceServerValues(with: [wire("a", "1"), wire("b", "true")], ofUser: "u")
            try store.parameters.set(parameter("a", 2), isServer: true, ofUser: "u")
            try store.parameters.replaceServerValues(with: [wire("a", "1"), wire("c", "3")], ofUser: "u")
            #expect(try known() == ["a=2.0?", "c=3.0"])
            // The app set the parameter again while the answer was in flight.
            try store.parameters.answered([parameter("a", 7)], isKept: true, ofUser: "u")
            #expect(try known() == ["a=2.0?", "c=3.0"])
            try store.parameters.answered([parameter("a", 2)], isKept: true, ofUser: "u")
            #expect(try known() == ["a=2.0", "c=3.0"])
            try store.parameters.set(parameter("c", nil), isServer: true, ofUser: "u")
            #expect(try known() == ["a=2.0", "c=-?"])
            try store.parameters.answered([parameter("c", nil)], isKept: true, ofUser: "u")
            try store.parameters.set(parameter("d", 1), isServer: true, ofUser: "u")
            try store.parameters.answered([parameter("d", 1)], isKept: false, ofUser: "u")
            #expect(try known() == ["a=2.0"])
        }
    }

    @Test("newly matching oplogs count as new, and stored oplogs keep their state")
    func newlyMatching() throws {
        try withStore { open in
            let store = try open()
            func batch(_ ids: [Int64], reread: UInt64 = 0) -> Mss_Device_V1_ChannelBatch {
                .with {
                    $0.bizType = "B"
                    $0.upto = ids.last ?? 0
                    $0.reread = reread
                    $0.newlyMatching = reread > 0
                    $0.entries = ids.map { id in .with { $0.oplogID = id } }
                }
            }
            _ = try store.store([batch([2, 4])], userID: "u", bindNumber: 1)
            let channel = try #require(store.channels.all(of: "B", visibleTo: "u").first)
            let shown = try #require(try store.oplogs.handOut(2, of: channel, isRepeat: false))
            try store.oplogs.confirm([shown])
            let outcome = try store.store([batch([1, 2, 4], reread: 8)], userID: "u", bindNumber: 1)
            #expect(outcome.rereads == [8])
            #expect(try store.oplogs.waiting(in: channel, limit: 9) == [1, 4])
            for id in [Int64(1), 4] {
                #expect(try store.oplogs.handOut(id, of: channel, isRepeat: false)?.isReplay == false)
            }
        }
    }

    // MARK: On a connection

    private func machine() -> ClientStateMachine {
        var machine = ClientStateMachine()
        _ = machine.opened(
            .with { $0.protocolVersion = 1 }, user: BoundUser(userID: "u", sessionID: "s"), points: [], now: now)
        _ = machine.received(.with { $0.connected.heartbeatSeconds = 60 }, now: now)
        return machine
    }

    private func kept(
        _ number: UInt32, _ refusal: Mss_Device_V1_RequestRefusal = .none
    ) -> Mss_Device_V1_Packet {
        .with {
            $0.parametersKept.number = number
            $0.parametersKept.refusal = refusal
            $0.parametersKept.reason = "why"
        }
    }

    @Test("values for the server are sent when the user is accepted: one frame at a time, and repeated")
    func frames() {
        var machine = machine()
        #expect(machine.hasParameters(now: now).isEmpty)
        let bound = machine.received(
            .with {
                $0.bindResult.bindNumber = 1
                $0.bindResult.accepted = true
            }, now: now)
        #expect(bound.contains(.collectParameters(userID: "u")))
        func send(_ machine: inout ClientStateMachine, at time: ContinuousClock.Instant) -> UInt32? {
            let actions = machine.collected(parameters: [parameter("a", 1)], ofUser: "u", now: time)
            guard case .send(let packet)? = actions.first else { return nil }
            return packet.keepParameters.number
        }
        #expect(send(&machine, at: now) == 1 && send(&machine, at: now) == nil)
        #expect(machine.received(kept(2), now: now).isEmpty, "of another frame")
        #expect(machine.received(kept(1, .tryAgain), now: now).isEmpty)
        #expect(send(&machine, at: now) == nil)
        let later = now + .seconds(1)
        #expect(machine.ticked(now: later).contains(.collectParameters(userID: "u")))
        #expect(send(&machine, at: later) == 2)
        let refused = machine.received(kept(2, .invalid), now: later)
        #expect(
            refused.first
                == .parametersAnswered(.init(parameters: [parameter("a", 1)], userID: "u", refusal: "why")))
        #expect(send(&machine, at: later) == 3)
        #expect(machine.ticked(now: later + .seconds(31)).contains(.end(.silent)))
    }

    @Test(
        "another user's bind drops the frame in flight and sends that user's list; a late list is dropped")
    func otherUser() throws {
        var machine = machine()
        _ = machine.received(
            .with {
                $0.bindResult.bindNumber = 1
                $0.bindResult.accepted = true
            }, now: now)
        _ = machine.collected(parameters: [parameter("a", 1)], ofUser: "u", now: now)
        let actions = machine.userChanged(
            to: BoundUser(userID: "v", sessionID: "s"), points: [], parameters: [parameter("b", 2).wire], now: now)
        let binds = actions.compactMap { action -> Mss_Device_V1_Bind? in
            if case .send(let packet) = action, case .bind(let bind)? = packet.body { bind } else { nil }
        }
        #expect(binds.map { $0.parameters.map(\.value) } == [["2.0"]])
        #expect(machine.received(kept(1), now: now).isEmpty)
        #expect(machine.received(.with { $0.userParameters.bindNumber = 1 }, now: now).isEmpty)
        _ = machine.received(
            .with {
                $0.bindResult.bindNumber = 2
                $0.bindResult.accepted = true
            }, now: now)
        let list = Mss_Device_V1_UserParameters.with { $0.bindNumber = 2 }
        #expect(
            machine.received(.with { $0.userParameters = list }, now: now) == [.replaceParameters(list, userID: "v")])
    }
}
