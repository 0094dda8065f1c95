import SyncModel
import TestSupport
import Testing

@testable import DeliveryHistory

/// A change of a correct history that breaks one promise.
struct HistoryMutation: Sendable, CustomTestStringConvertible {
    let name: String
    let breaks: HistoryFault.Promise
    /// Applies the change. Returns false when the history has no place for it.
    let apply: @Sendable (inout GeneratedHistory) -> Bool

    var testDescription: String { name }

    init(
        _ name: String, _ breaks: HistoryFault.Promise, _ apply: @escaping @Sendable (inout GeneratedHistory) -> Bool
    ) {
        self.name = name
        self.breaks = breaks
        self.apply = apply
    }

    static let all = [stored, delivered, ordered, attempted, identified, addressed, verified, ofRules].flatMap { $0 }

    // MARK: I1

    private static let stored = [
        HistoryMutation("not stored", .stored) { history in
            guard let push = history.pickAnswered(where: { $0.2 != .optional }) else { return false }
            history.stored.removeAll { $0.push == push.name }
            return true
        },
        HistoryMutation("stored under another id", .stored) { history in
            guard let push = history.pickAnswered(where: { $0.2 != .optional }),
                let index = history.stored.firstIndex(where: { $0.push == push.name })
            else { return false }
            history.stored[index].id += 1
            return true
        },
        HistoryMutation("forgotten, and no commit was lost", .stored) { history in
            guard let push = history.pickAnswered() else { return false }
            history.events.append(.forgotten(push: push.name))
            return true
        },
    ]

    // MARK: I2

    private static let delivered = [
        HistoryMutation("lost", .delivered) { history in
            guard let handOut = history.pickGiven(where: { $0.from.kind == .device && $1 == .everyone }) else {
                return false
            }
            history.events.removeAll {
                if case .given(let one) = $0 { one.push == handOut.push } else { false }
            }
            return history.isAnswered(handOut.push)
        },
        HistoryMutation("doubled", .delivered) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            history.events.insert(.given(handOut), at: index + 1)
            return true
        },
        HistoryMutation("given after it was confirmed", .delivered) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            guard
                let confirmed = history.events[index...].firstIndex(where: {
                    if case .confirmed(handOut.device, handOut.from, handOut.id) = $0 { true } else { false }
                })
            else { return false }
            history.events.insert(.given(handOut.copy { $0.attempt = 9 }), at: confirmed + 1)
            return true
        },
        HistoryMutation("first given as a repeat", .delivered) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            history.events[index] = .given(handOut.copy { $0.attempt = 2 })
            return true
        },
        HistoryMutation("given without being counted", .delivered) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            history.events[index] = .given(handOut.copy { $0.attempt = 0 })
            return true
        },
    ]

    // MARK: I3

    private static let ordered = [
        HistoryMutation("swapped for an app", .ordered) { history in
            for (index, event) in history.events.enumerated() {
                guard case .given(let first) = event, first.attempt == 1 else { continue }
                let next = history.events[(index + 1)...].firstIndex {
                    guard case .given(let other) = $0 else { return false }
                    return other.device == first.device && other.from == first.from
                }
                guard let next, case .given(let other) = history.events[next], other.attempt == 1 else { continue }
                history.events.insert(history.events.remove(at: index), at: next)
                return true
            }
            return false
        },
        HistoryMutation("numbered against the order of the calls", .ordered) { history in
            guard let (earlier, later) = history.pickInOrder() else { return false }
            history.events[later.index] = .answered(push: later.name, id: earlier.id - 1)
            return true
        },
        HistoryMutation("stored in another order", .ordered) { history in
            for index in history.stored.indices.dropFirst() {
                guard history.stored[index].target == history.stored[index - 1].target else { continue }
                history.stored.swapAt(index, index - 1)
                return true
            }
            return false
        },
    ]

    // MARK: I4

    private static let attempted = [
        HistoryMutation("given with another payload", .attempted) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            history.events[index] = .given(handOut.copy { $0.payload += "!" })
            return true
        },
        HistoryMutation("given, but not pushed", .attempted) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            let other = handOut.copy {
                $0.push = "nobody's"
                $0.id += 1_000
            }
            history.events.insert(.given(other), at: index + 1)
            return true
        },
        HistoryMutation("stored, but not pushed", .attempted) { history in
            guard let last = history.stored.last else { return false }
            history.stored.append(("nobody's", last.target, last.id + 1))
            return true
        },
        HistoryMutation("stored, but answered as failed", .attempted) { history in
            guard let last = history.stored.last else { return false }
            history.events.append(.invoked(push: "failed", to: last.target))
            history.stored.append(("failed", last.target, last.id + 1))
            return true
        },
        HistoryMutation("answered, but not pushed", .attempted) { history in
            history.events.append(.answered(push: "nobody's", id: 7))
            return true
        },
    ]

    // MARK: I5

    private static let identified = [
        HistoryMutation("answered with two ids", .identified) { history in
            guard let push = history.pickAnswered() else { return false }
            history.events.append(.answered(push: push.name, id: push.id + 1_000))
            return true
        },
        HistoryMutation("one id for two", .identified) { history in
            guard let (earlier, later) = history.pickInOrder() else { return false }
            history.events[later.index] = .answered(push: later.name, id: earlier.id)
            return true
        },
        HistoryMutation("given as another id", .identified) { history in
            guard let handOut = history.pickGiven(where: { _, _ in true }), history.isAnswered(handOut.push) else {
                return false
            }
            history.events.append(.given(handOut.copy { $0.id += 1_000 }))
            return true
        },
        HistoryMutation("stored twice", .identified) { history in
            guard let last = history.stored.last else { return false }
            history.stored.append((last.push, last.target, last.id + 1))
            return true
        },
    ]

    // MARK: I6

    private static let addressed = [
        HistoryMutation("given to another user", .addressed) { history in
            history.strayTo { other, handOut, history in
                handOut.from.kind == .user && history.instances[other] == handOut.from.instance
                    && history.users[other] != handOut.from.target
            }
        },
        HistoryMutation("given to another device", .addressed) { history in
            history.strayTo { other, handOut, history in
                handOut.from.kind == .device && history.instances[other] == handOut.from.instance
                    && other != handOut.device
            }
        },
        HistoryMutation("given to another tenant", .addressed) { history in
            history.strayTo { other, handOut, history in history.instances[other] != handOut.from.instance }
        },
        HistoryMutation("given in another channel", .addressed) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            history.events[index] = .given(
                handOut.copy {
                    $0.from = HistoryTarget(
                        instance: $0.from.instance, kind: $0.from.kind, target: $0.from.target, bizType: "OTHER")
                })
            return true
        },
        HistoryMutation("stored for another", .addressed) { history in
            guard let index = history.stored.indices.randomElement(using: &history.random),
                let other = history.stored.first(where: { $0.target != history.stored[index].target })
            else { return false }
            history.stored[index].target = other.target
            return true
        },
        HistoryMutation("given although a rule skips it", .addressed) { history in
            history.pushToAll(.nobody, givenTo: 1)
        },
        HistoryMutation("given to two devices instead of one", .addressed) { history in
            history.pushToAll(.one, givenTo: 2)
        },
    ]

    // MARK: I7, I9

    private static let verified = [
        HistoryMutation("sent on a session that is invalid", .verified) { history in
            history.events.append(.stale(device: "device-1", bizType: "CHAT", session: "session"))
            return true
        },
        HistoryMutation("answered as not online, but given before", .honest) { history in
            guard let handOut = history.pickGiven(where: { _, _ in true }) else { return false }
            history.events.append(.notOnline(push: handOut.push, id: handOut.id))
            return true
        },
        HistoryMutation("answered as not online, but given later", .honest) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            history.events.insert(.notOnline(push: handOut.push, id: handOut.id), at: index)
            return true
        },
    ]
}

extension HistoryHandOut {
    /// The properties that a mutation can change.
    struct Draft {
        var device: String
        var from: HistoryTarget
        var id: Int64
        var push: String
        var payload: String
        var attempt: Int
    }

    /// A copy with changed properties.
    func copy(_ change: (inout Draft) -> Void) -> HistoryHandOut {
        var draft = Draft(device: device, from: from, id: id, push: push, payload: payload, attempt: attempt)
        change(&draft)
        return HistoryHandOut(
            device: draft.device, from: draft.from, id: draft.id, push: draft.push, payload: draft.payload,
            attempt: draft.attempt)
    }
}

extension GeneratedHistory {
    private var invoked: [(index: Int, name: String, target: HistoryTarget, reach: HistoryReach)] {
        events.enumerated().compactMap { index, event in
            if case .invoked(let name, let target, let reach, _) = event { (index, name, target, reach) } else { nil }
        }
    }

    private var answers: [(index: Int, name: String, id: Int64)] {
        events.enumerated().compactMap { index, event in
            if case .answered(let name, let id) = event { (index, name, id) } else { nil }
        }
    }

    func isAnswered(_ name: String) -> Bool { answers.contains { $0.name == name } }

    mutating func pickAnswered(
        where isWanted: ((String, Int64, HistoryReach)) -> Bool = { _ in true }
    ) -> (name: String, id: Int64)? {
        let reaches = Dictionary(invoked.map { ($0.name, $0.reach) }) { first, _ in first }
        return answers.filter { isWanted(($0.name, $0.id, reaches[$0.name] ?? .everyone)) }
            .randomElement(using: &random).map { ($0.name, $0.id) }
    }

    mutating func pickGiven(where isWanted: (HistoryHandOut, HistoryReach) -> Bool) -> HistoryHandOut? {
        let reaches = Dictionary(invoked.map { ($0.name, $0.reach) }) { first, _ in first }
        return events.compactMap { event -> HistoryHandOut? in
            guard case .given(let handOut) = event, isWanted(handOut, reaches[handOut.push] ?? .everyone) else {
                return nil
            }
            return handOut
        }.randomElement(using: &random)
    }

    mutating func pickFirstGiven() -> (index: Int, handOut: HistoryHandOut)? {
        events.enumerated().compactMap { index, event -> (Int, HistoryHandOut)? in
            if case .given(let handOut) = event, handOut.attempt == 1 { (index, handOut) } else { nil }
        }.randomElement(using: &random)
    }

    /// Two pushes of a channel. The first was answered before the second began.
    func pickInOrder() -> (earlier: (name: String, id: Int64), later: (index: Int, name: String))? {
        let all = invoked
        for first in answers {
            guard let target = all.first(where: { $0.name == first.name })?.target else { continue }
            let second = all.first { $0.index > first.index && $0.target == target && isAnswered($0.name) }
            guard let second, let index = answers.first(where: { $0.name == second.name })?.index else { continue }
            return ((first.name, first.id), (index, second.name))
        }
        return nil
    }

    /// Hands out an oplog also to a device that it is not for.
    mutating func strayTo(_ isStray: (String, HistoryHandOut, GeneratedHistory) -> Bool) -> Bool {
        for event in events.reversed() {
            guard case .given(let handOut) = event else { continue }
            guard let other = instances.keys.sorted().first(where: { isStray($0, handOut, self) }) else { continue }
            events.append(.given(handOut.copy { $0.device = other }))
            return true
        }
        return false
    }

    /// Adds a global push with this reach, and hands it out to `count` devices.
    mutating func pushToAll(_ reach: HistoryReach, givenTo count: Int) -> Bool {
        let target = HistoryTarget(instance: "app", kind: .globalDevice, target: "", bizType: "LAST")
        events.append(.invoked(push: "last", to: target, reach: reach))
        events.append(.answered(push: "last", id: 1))
        stored.append(("last", target, 1))
        for number in 1...count {
            events.append(
                .given(
                    HistoryHandOut(
                        device: "device-\(number)", from: target, id: 1, push: "last",
                        payload: target.payload(of: "last"), attempt: 1)))
        }
        return true
    }
}
