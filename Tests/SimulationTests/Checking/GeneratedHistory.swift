import SyncModel
import TestSupport

@testable import DeliveryHistory

/// The history of a correct service, drawn from a seed.
struct GeneratedHistory {
    typealias Row = (push: String, target: HistoryTarget, id: Int64)

    private struct Place: Hashable {
        let device: String
        let channel: HistoryTarget
    }

    private struct Stored {
        let push: String
        let id: Int64
        let reach: HistoryReach
    }

    var random: SeededGenerator
    var events: [HistoryEvent] = []
    var stored: [Row] = []
    private(set) var users: [String: String?] = [:]
    private(set) var instances: [String: String] = [:]
    private var channels: [HistoryTarget: [Stored]] = [:]
    /// The channels in the order of their first pushes.
    private var order: [HistoryTarget] = []
    private var databaseEpoch: Int64 = 0
    private var positions: [Place: Int] = [:]
    private var unconfirmed: [HistoryHandOut] = []
    private var unanswered: [(push: String, id: Int64)] = []
    private var taken: Set<String> = []
    private var lastPush = 0

    /// - Parameter losesCommits: whether a failover in the middle loses the last commits.
    init(seed: UInt64, losesCommits: Bool) {
        random = SeededGenerator(seed: seed)
        for number in 1...5 {
            let device = "device-\(number)"
            instances[device] = number == 5 ? "other" : "app"
            bind(device, to: "user-\(1 + number % 2)")
        }
        for step in 0..<160 {
            if losesCommits, step == 80 { loseCommits() }
            switch draw(0..<10) {
            case 0...2: push()
            case 3...6: deliver(to: "device-\(draw(1..<6))")
            case 7: confirm()
            case 8: repeatHandOut()
            default: bindAnswerOrConfirm()
            }
        }
        finish()
    }

    mutating func draw(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

    // MARK: Steps

    private mutating func bind(_ device: String, to user: String?) {
        users[device] = user
        events.append(.bound(device: device, instance: instances[device] ?? "", user: user))
    }

    private mutating func target() -> HistoryTarget {
        let instance = draw(0..<5) == 0 ? "other" : "app"
        return switch draw(0..<8) {
        case 0...3:
            HistoryTarget(instance: instance, kind: .user, target: "user-\(draw(1..<3))", bizType: "CHAT")
        case 4, 5:
            HistoryTarget(
                instance: instance, kind: .device, target: instance == "app" ? "device-\(draw(1..<5))" : "device-5",
                bizType: "DEVICE")
        case 6: HistoryTarget(instance: instance, kind: .globalUser, target: "", bizType: "NEWS")
        default: HistoryTarget(instance: instance, kind: .globalDevice, target: "", bizType: "ALL")
        }
    }

    private mutating func push() {
        lastPush += 1
        let (name, target) = ("push-\(lastPush)", target())
        let reach: HistoryReach =
            switch draw(0..<12) {
            case 0: .optional
            case 1: .nobody
            case 2: .anyone
            case 3: .one
            default: .everyone
            }
        events.append(.invoked(push: name, to: target, reach: reach))
        // The push failed and its answer says so.
        if draw(0..<12) == 0 { return }
        if channels[target] == nil { order.append(target) }
        let last = max(channels[target]?.last?.id ?? 0, databaseEpoch << 40)
        let id = last + Int64(draw(1..<3))
        channels[target, default: []].append(Stored(push: name, id: id, reach: reach))
        guard draw(0..<5) == 0 else { return events.append(.answered(push: name, id: id)) }
        events.append(.uncertain(push: name))
        unanswered.append((name, id))
    }

    private mutating func bindAnswerOrConfirm() {
        let device = "device-\(draw(1..<6))"
        switch draw(0..<3) {
        case 0: bind(device, to: draw(0..<4) == 0 ? nil : "user-\(draw(1..<3))")
        case 1:
            guard !unanswered.isEmpty else { return }
            let late = unanswered.remove(at: draw(0..<unanswered.count))
            events.append(.answered(push: late.push, id: late.id))
        default: confirm()
        }
    }

    /// Hands out the device's next oplog, if there is one.
    @discardableResult
    private mutating func deliver(to device: String) -> Bool {
        for channel in order where isFor(channel, device) {
            // A device has a global user channel once for each of its users.
            let own = HistoryTarget(
                instance: channel.instance, kind: channel.kind,
                target: channel.kind == .globalUser ? (users[device] ?? nil) ?? "" : channel.target,
                bizType: channel.bizType)
            let place = Place(device: device, channel: own)
            guard let next = channels[channel]?.dropFirst(positions[place] ?? 0).first else { continue }
            positions[place, default: 0] += 1
            switch next.reach {
            case .nobody: return true
            case .optional where draw(0..<2) == 0: return true
            case .anyone, .one: if !taken.insert(next.push).inserted { return true }
            default: break
            }
            let handOut = HistoryHandOut(
                device: device, from: own, id: next.id, push: next.push, payload: channel.payload(of: next.push),
                attempt: 1)
            events.append(.given(handOut))
            unconfirmed.append(handOut)
            return true
        }
        return false
    }

    private func isFor(_ channel: HistoryTarget, _ device: String) -> Bool {
        guard instances[device] == channel.instance else { return false }
        let user = users[device] ?? nil
        return switch channel.kind {
        case .user: user == channel.target
        case .device: device == channel.target
        case .globalUser: user != nil
        case .globalDevice: true
        }
    }

    private mutating func confirm() {
        guard !unconfirmed.isEmpty else { return }
        let done = unconfirmed.remove(at: draw(0..<unconfirmed.count))
        events.append(.confirmed(device: done.device, from: done.from, id: done.id))
    }

    private mutating func repeatHandOut() {
        let visible = unconfirmed.indices.filter { index in
            let (from, device) = (unconfirmed[index].from, unconfirmed[index].device)
            return isFor(from, device) && (from.kind != .globalUser || users[device] == from.target)
        }
        guard let index = visible.randomElement(using: &random) else { return }
        let last = unconfirmed[index]
        unconfirmed[index] = HistoryHandOut(
            device: last.device, from: last.from, id: last.id, push: last.push, payload: last.payload,
            attempt: last.attempt + 1)
        events.append(.given(unconfirmed[index]))
    }

    /// The standby lacks the last oplogs of some channels. Their ids are not used again.
    private mutating func loseCommits() {
        events.append(.lostCommits)
        databaseEpoch += 1
        for channel in order where draw(0..<2) == 0 {
            for lost in (channels[channel] ?? []).suffix(draw(0..<3)) {
                channels[channel]?.removeAll { $0.push == lost.push }
                unanswered.removeAll { $0.push == lost.push }
                events.append(.forgotten(push: lost.push))
            }
            for (place, position) in positions where place.channel.ofEverybody == channel {
                positions[place] = min(position, channels[channel]?.count ?? 0)
            }
        }
    }

    private mutating func finish() {
        for device in instances.keys.sorted() { while deliver(to: device) {} }
        while !unconfirmed.isEmpty { confirm() }
        for channel in order { stored += (channels[channel] ?? []).map { ($0.push, channel, $0.id) } }
    }

    // MARK: Verdict

    /// The faults that the checker finds in the history.
    var faults: [HistoryFault] {
        var checker = HistoryChecker()
        for (index, event) in events.enumerated() { checker.observe(event, at: .seconds(index)) }
        checker.compare(stored: stored, at: .seconds(events.count))
        checker.expectNothingOwed(at: .seconds(events.count))
        return checker.faults
    }
}
