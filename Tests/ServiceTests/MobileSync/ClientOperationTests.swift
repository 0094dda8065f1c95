import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import MobileSync

@Suite("SyncClient: operations on a connection") struct ClientOperationTests {
    private let now = ContinuousClock.now

    private func operations(_ ids: [String]) -> [DeviceOperation] {
        ids.map { DeviceOperation(id: $0, component: "C", key: "k", name: "n") }
    }

    private func taken(
        _ number: UInt32, _ refusals: [(String, UInt32)] = [], retryAfter: UInt32 = 0
    ) -> Mss_Device_V1_OperationsTaken {
        .with {
            $0.number = number
            $0.retryAfterMs = retryAfter
            $0.refusals = refusals.map { id, code in
                .with {
                    $0.operationID = id
                    $0.code = code
                }
            }
        }
    }

    /// A state machine with an open session and user u bound.
    private func machine() -> ClientStateMachine {
        var machine = ClientStateMachine()
        _ = machine.opened(
            .with { $0.protocolVersion = 1 }, user: BoundUser(userID: "u", sessionID: "s"), points: [], now: now)
        _ = machine.received(.with { $0.connected.heartbeatSeconds = 60 }, now: now)
        return machine
    }

    @Test("no frame is sent before the user is accepted, then one at a time; a reply releases the next")
    func oneAtATime() {
        var machine = machine()
        #expect(machine.hasOperations(now: now).isEmpty)
        let bound = machine.received(
            .with {
                $0.bindResult.bindNumber = 1
                $0.bindResult.accepted = true
            }, now: now)
        #expect(bound.contains(.collectOperations(userID: "u")))
        guard case .send(let packet)? = machine.collected(operations(["a"]), ofUser: "u", now: now).first else {
            Issue.record("nothing was sent")
            return
        }
        #expect(packet.submitOperations.number == 1 && packet.submitOperations.bindNumber == 1)
        #expect(machine.hasOperations(now: now).isEmpty)
        let second = machine.collected(operations(["b"]), ofUser: "u", now: now)
        #expect(second.isEmpty)
        let stranger = machine.received(.with { $0.operationsTaken = taken(2) }, now: now)
        #expect(stranger.isEmpty)
        let answer = machine.received(.with { $0.operationsTaken = taken(1) }, now: now)
        #expect(answer == [.operationsAnswered(.init(taken: ["a"])), .collectOperations(userID: "u")])
        let others = machine.collected(operations(["b"]), ofUser: "another", now: now)
        let none = machine.collected([], ofUser: "u", now: now)
        #expect(others.isEmpty && none.isEmpty)
    }

    @Test("a frame without an answer ends the connection after 30 s; another user takes its place")
    func silence() {
        var operations = ClientOperations()
        _ = operations.send(self.operations(["a"]), bindNumber: 1, now: now)
        #expect(!operations.isOverdue(at: now + .seconds(29)) && operations.isOverdue(at: now + .seconds(30)))
        #expect(operations.deadline == now + .seconds(30))
        operations.userChanged()
        #expect(operations.isFree(at: now) && operations.deadline == nil)
        let packet = operations.send(self.operations(["b"]), bindNumber: 2, now: now)
        #expect(packet.submitOperations.number == 2)
        let late = operations.answered(taken(1), now: now)
        #expect(late == nil, "the answer to what was sent before")
    }

    @Test("refusals: final ones end an operation, of the bind wait for one, others for a while that grows")
    func refusals() throws {
        var operations = ClientOperations()
        _ = operations.send(self.operations(["a", "b"]), bindNumber: 1, now: now)
        let first = operations.answered(taken(1, [("a", 400)]), now: now)
        let mixed = try #require(first)
        #expect(mixed.taken == ["b"] && mixed.over.map(\.code) == [400] && mixed.free.isEmpty)
        var pauses: [Duration] = []
        for number in UInt32(2)...10 {
            _ = operations.send(self.operations(["c"]), bindNumber: 1, now: now)
            let answer = operations.answered(taken(number, [("c", 503)]), now: now)
            #expect(answer == ClientOperations.Answer(), "the service may have it: it is not free")
            #expect(!operations.isFree(at: now))
            pauses.append(now.duration(to: try #require(operations.deadline)))
            #expect(operations.isDue(at: now + .seconds(60)))
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
        _ = operations.send(self.operations(["c"]), bindNumber: 1, now: now)
        let many = operations.answered(taken(11, [("c", 429)], retryAfter: 90_000), now: now)
        #expect(many?.free == ["c"])
        #expect(operations.deadline == now + .seconds(90))
        operations.userChanged()
        _ = operations.send(self.operations(["c"]), bindNumber: 2, now: now)
        let unsigned = operations.answered(taken(12, [("c", 401)]), now: now)
        #expect(unsigned?.free == ["c"])
        #expect(!operations.isFree(at: now + .seconds(9_999)) && operations.deadline == nil)
        operations.userChanged()
        #expect(operations.isFree(at: now))
    }
}
