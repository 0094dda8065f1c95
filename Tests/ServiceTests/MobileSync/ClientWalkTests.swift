import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import MobileSync

/// A client's connection with random events from a seed, the counterpart of `SessionWalk`.
private struct ClientWalk {
    enum State: String, CaseIterable {
        case idle, greeting, open, ended
    }

    enum Other: String, CaseIterable {
        case opened, stored, userChanged, foregroundChanged, subscriptionsChanged, asked, news, collected, ticked, lost,
            operations, operationsCollected
    }

    struct Pair: Hashable {
        let state: State
        let event: String
    }

    static let names = SessionWalk.bodies.map { "frame \($0.name)" } + Other.allCases.map(\.rawValue)
    private static let users = [nil, "one", "two"].map { user in user.map { BoundUser(userID: $0, sessionID: "s") } }

    private var random: SeededGenerator
    private var machine = ClientStateMachine()
    private var now = ContinuousClock.now
    private var user: BoundUser?
    private var bindNumber: UInt32 = 0
    private var ticket: UInt64 = 0
    private var answeredTickets: Set<UInt64> = []
    /// Whether a frame of operations has no answer yet.
    private var isOut = false
    private(set) var met: Set<Pair> = []
    private(set) var faults: [String] = []

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private var state: State {
        switch machine.phase {
        case .idle: .idle
        case .greeting: .greeting
        case .open: .open
        case .ended: .ended
        }
    }

    private mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func walk(steps: Int) {
        var afterEnd = 0
        for _ in 0..<steps where afterEnd < 10 {
            now += .milliseconds(Int.random(in: 0...3_000, using: &random))
            let name = draw()
            let before = state
            met.insert(Pair(state: before, event: name))
            check(perform(name), of: name, before: before)
            if state == .ended { afterEnd += 1 }
        }
    }

    private mutating func draw() -> String {
        if happens(40) {
            switch state {
            case .idle: return Other.opened.rawValue
            case .greeting: return "frame connected"
            case .open, .ended: break
            }
        }
        while true {
            let name = Self.names[Int.random(in: Self.names.indices, using: &random)]
            let isLast = ["frame close", "frame connected", Other.lost.rawValue].contains(name)
            if !isLast || happens(10) { return name }
        }
    }

    private mutating func perform(_ name: String) -> [ClientAction] {
        guard let event = Other(rawValue: name) else { return machine.received(packet(name), now: now) }
        switch event {
        case .opened:
            let isFirst = state == .idle
            let next = Self.users.randomElement(using: &random) ?? nil
            if isFirst { (user, bindNumber) = (next, next == nil ? 0 : 1) }
            return machine.opened(.with { $0.protocolVersion = 1 }, user: next, points: [], now: now)
        case .stored:
            return machine.stored([.with { $0.upto = 1 }], rereads: happens(20) ? [1] : [], foundGap: happens(5))
        case .userChanged:
            let next = Self.users.randomElement(using: &random) ?? nil
            let isHeard = state == .greeting || state == .open
            if isHeard, next != user { (user, bindNumber, isOut) = (next, bindNumber + 1, false) }
            return machine.userChanged(to: next, points: [], now: now)
        case .foregroundChanged:
            return machine.foregroundChanged(to: Bool.random(using: &random), now: now)
        case .subscriptionsChanged: return machine.subscriptionsChanged(suspended: ["B"])
        case .asked:
            ticket += 1
            return machine.ask(.summary(.init()), ticket: ticket, now: now)
        case .news: return machine.hasReports()
        case .collected:
            let content = OplogReport(confirmed: happens(80) ? [.with { $0.bizType = "B" }] : [])
            return machine.collected(content, now: now)
        case .operations: return machine.hasOperations(now: now)
        case .operationsCollected:
            let found = happens(80) ? [DeviceOperation(id: "o", component: "C", key: "k", name: "n")] : []
            return machine.collected(found, ofUser: user?.userID ?? "one", now: now)
        case .ticked: return machine.ticked(now: now)
        case .lost: return machine.end(.lost(reason: "the network"))
        }
    }

    private mutating func packet(_ name: String) -> Mss_Device_V1_Packet {
        let body = String(name.dropFirst("frame ".count))
        let number = happens(80) ? bindNumber : bindNumber + 1
        switch body {
        case "bindResult":
            let isAccepted = happens(80)
            return .with {
                $0.bindResult.bindNumber = number
                $0.bindResult.accepted = isAccepted
            }
        case "push":
            return .with {
                $0.push.batches = [
                    .with {
                        $0.kind = .user
                        $0.bizType = "B"
                        $0.bindNumber = number
                    },
                    .with {
                        $0.kind = .device
                        $0.bizType = "D"
                    },
                ]
            }
        case "caughtUp": return .with { $0.caughtUp.bindNumber = number }
        case "sessionState":
            return .with {
                $0.sessionState.bindNumber = number
                $0.sessionState.validity = .invalid
            }
        default: break
        }
        return SessionWalk.bodies.first { $0.name == body }.map { Mss_Device_V1_Packet.with($0.fill) } ?? .init()
    }

    private mutating func check(_ actions: [ClientAction], of name: String, before: State) {
        func fault(_ text: String) { faults.append("\(name) in \(before): \(text)") }
        if before == .ended, state != .ended { fault("an ended connection came back") }
        for action in actions {
            switch action {
            case .operationsAnswered(let answer):
                if !isOut { fault("it takes an answer to nothing") }
                if answer.taken + answer.over.map(\.operationID) + answer.free != ["o"], before == .open {
                    fault("it takes \(answer)")
                }
                isOut = false
            case .send(let packet):
                if case .submitOperations(let frame)? = packet.body {
                    if isOut { fault("it sends a second frame of operations") }
                    if frame.bindNumber != bindNumber || user == nil { fault("it sends operations of another bind") }
                    isOut = true
                }
                if before == .ended || before == .idle && name != Other.opened.rawValue { fault("it sends") }
            case .store(let batches, let userID, let number):
                if before != .open { fault("it stores before it was greeted") }
                let ofUser = batches.filter { $0.kind == .user }
                if ofUser.contains(where: { $0.bindNumber != bindNumber }) { fault("it stores for an older bind") }
                if !ofUser.isEmpty, userID != user?.userID || userID == nil { fault("it stores another's data") }
                if number != bindNumber { fault("it stores under bind \(number)") }
            case .answered(let ticket, _):
                if !answeredTickets.insert(ticket).inserted { fault("question \(ticket) is answered twice") }
            case .end:
                if state != .ended { fault("it goes on after its end") }
            case .caughtUp(let userID?) where userID != user?.userID: fault("it has caught up for another user")
            default: break
            }
        }
        if state == .ended, before != .ended {
            if actions.count(where: { if case .end = $0 { true } else { false } }) != 1 {
                fault("it ends without a word")
            }
            let open = (1...max(ticket, 1)).filter { $0 <= ticket && !answeredTickets.contains($0) }
            if !open.isEmpty { fault("questions \(open) have no answer") }
        }
    }
}

@Suite("A client's connection with random events")
struct ClientWalkTests {
    @Test("every event in every state, by seed: no connection breaks a rule")
    func everyPair() {
        var met: Set<ClientWalk.Pair> = []
        for seed in UInt64(1)...4_000 {
            var walk = ClientWalk(seed: seed)
            walk.walk(steps: 60)
            met.formUnion(walk.met)
            #expect(walk.faults.isEmpty, "seed \(seed): \(walk.faults)")
        }
        let pairs = ClientWalk.State.allCases.flatMap { state in
            ClientWalk.names.map { ClientWalk.Pair(state: state, event: $0) }
        }
        #expect(pairs.filter { !met.contains($0) } == [])
        print("\(met.count) of \(pairs.count) pairs of state and event")
    }
}
