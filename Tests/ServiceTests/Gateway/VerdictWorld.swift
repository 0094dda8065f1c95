import BusMessages
import Credentials
import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import TestSupport

@testable import Gateway

/// A session, its tenant and the processes between them, with random events and a clock in microseconds. The checks
/// compare sent data with the true validity only.
struct VerdictWorld {
    /// An event with a time.
    private enum Event {
        case push(Int)
        case page(Int, after: Int64)
        case tick
        case flip
        case answer(Answer)
        case invalidNotice(askedAt: Int)
        case revoke
        case revocationNotice(of: Int)
        case rebind
        case storeRegisters(bind: UInt32)
        case registered(bind: UInt32, revoked: (number: Int, ago: Int)?)
        case announce
    }

    /// The tenant's answer to a request, and the time of the request.
    private struct Answer {
        var bind: UInt32
        var sentAt: Int
        var askedAt: Int
        var joinedAfter: Int
        var isUnknown: Bool
    }

    /// Verdict lifetimes of the channels 1, 2, 3, in milliseconds. Some calls take longer than the second one.
    static let lifetimes = [0, 100, 1_000]
    private static let names = ["Z", "S", "L"]

    private(set) var faults: [String] = []
    private(set) var heads: [Int64] = [0, 0, 0]
    private(set) var shown: [Int64] = [0, 0, 0]
    private var bench: SessionBench
    private let start: ContinuousClock.Instant
    private var generator: SeededGenerator
    private var queue: [(at: Int, event: Event)] = []
    private var time = 0
    private var truths: [(at: Int, isValid: Bool)] = [(0, true)]
    private var revocations: [Int] = []
    /// The time by which the store's clock was set back after the revocations.
    private var stepBack = 0
    /// The latest revocation that the gateway has acknowledged.
    private var acknowledged: Int?
    private var bind: UInt32 = 1
    private var boundAt = 0
    /// The verdicts of this bind: the times of request and arrival.
    private var verdicts: [(askedAt: Int, at: Int, isValid: Bool)] = []
    /// The arrival times of the first page with data that is not sent yet.
    private var pagesAt: [Int?] = [nil, nil, nil]
    private var isCalm = false

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        bench = SessionBench(
            zip(Self.names, Self.lifetimes).map {
                SessionBench.configuration($0, checks: true, verdictLifetime: .milliseconds($1))
            })
        start = bench.now
        let opened = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = "u"
            $0.connect.bind.sessionID = "session"
        }
        perform(opened)
    }

    // MARK: Driving

    /// Makes faults of all kinds for some seconds.
    mutating func run(seconds: Int) {
        let end = time + seconds * 1_000_000
        for at in stride(from: time, to: end, by: 250_000) {
            schedule(.tick, in: at - time)
            for channel in 0..<3 where chance(70) { schedule(.push(channel), in: at - time + below(250_000)) }
            if chance(25) { schedule(.flip, in: at - time + below(250_000)) }
            if chance(10) { schedule(.revoke, in: at - time + below(250_000)) }
            if chance(25) { schedule(.rebind, in: at - time + below(250_000)) }
            if chance(10) { schedule(.announce, in: at - time + below(250_000)) }
        }
        advance(to: end)
    }

    /// Makes the session valid for good. The app binds again, pushes arrive steadily, and the store's clock steps back.
    /// Data that is not sent soon counts as starved.
    mutating func heal() {
        isCalm = true
        if !isTrulyValid(at: time) { truths.append((time, true)) }
        advance(to: time + 1_000_000)
        schedule(.rebind, in: 0)
        stepBack = 3_600_000_000
        schedule(.announce, in: 500_000)
        let end = time + 3_000_000
        for at in stride(from: 0, to: 3_000_000, by: 40_000) {
            for channel in 0..<3 { schedule(.push(channel), in: at + below(20_000)) }
        }
        for at in stride(from: 0, to: 8_000_000, by: 250_000) { schedule(.tick, in: at) }
        advance(to: end)
        for channel in 0..<3 where shown[channel] < heads[channel] - 30 {
            faults.append("\(Self.names[channel]) starves at \(shown[channel]) of \(heads[channel])")
        }
        advance(to: end + 5_000_000)
        for channel in 0..<3 where shown[channel] != heads[channel] {
            faults.append("\(Self.names[channel]) stands at \(shown[channel]) of \(heads[channel])")
        }
    }

    private mutating func advance(to end: Int) {
        while let next = queue.indices.min(by: { queue[$0].at < queue[$1].at }), queue[next].at <= end {
            let (at, event) = queue.remove(at: next)
            time = at
            bench.now = start + .microseconds(at)
            handle(event)
        }
        time = end
        bench.now = start + .microseconds(end)
    }

    private mutating func schedule(_ event: Event, in delay: Int) { queue.append((time + delay, event)) }
    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }
    private mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    // MARK: Events

    private mutating func handle(_ event: Event) {
        switch event {
        case .push(let channel):
            heads[channel] += 1
            guard isCalm || chance(80) else { return }
            let notice = SessionBench.notice(
                Self.names[channel], channel: Int64(channel), after: heads[channel] - 1, ids: [heads[channel]])
            perform(bench.handle(.noticed(notice)))
        case .page(let channel, let after):
            let upto = min(heads[channel], after + 64)
            pagesAt[channel] = pagesAt[channel] ?? time
            let page = SessionBench.page(after: after, ids: after < upto ? Array(after + 1...upto) : [])
            perform(bench.handle(.fetched(page, channelID: Int64(channel), bindNumber: bind)))
        case .tick:
            perform(bench.receive { $0.ping.number = 1 })
            perform(bench.handle(.ticked))
        case .flip:
            if !isCalm { truths.append((time, !isTrulyValid(at: time))) }
        case .answer(let answer): deliver(answer)
        case .invalidNotice(let askedAt):
            guard !isTrulyValid(at: askedAt) else { return }
            let actions = bench.handle(.invalidated(UserID("u"), digest: SessionDigest.of("session"), reason: ""))
            verdicts.append((time, time, false))
            perform(actions)
        case .revoke:
            guard !isCalm else { return }
            revocations.append(time)
            schedule(.revocationNotice(of: time), in: below(200_000))
        case .revocationNotice(let revocation):
            let actions = bench.handle(.revoked(UserID("u"), digest: []))
            acknowledged = max(acknowledged ?? 0, revocation)
            verdicts = []
            // The bound user cannot continue without a new bind.
            boundAt = min(boundAt, revocation - 1)
            perform(actions)
        case .rebind:
            (bind, boundAt, verdicts, pagesAt) = (bind + 1, time, [], [nil, nil, nil])
            perform(
                bench.receive {
                    $0.bind.bindNumber = bind
                    $0.bind.userID = "u"
                    $0.bind.sessionID = "session"
                })
        case .announce: perform(bench.handle(.registrationDue))
        case .storeRegisters(let number):
            let revoked = revocations.last.map { (number: revocations.count, ago: max(0, time - $0 - stepBack)) }
            schedule(.registered(bind: number, revoked: revoked), in: below(30_000))
        case .registered(let number, let revoked):
            var reply = SessionBench.reply(
                (0..<3).map { (Self.names[$0], Int64($0), heads[$0], shown[$0]) })
            if let revoked {
                reply.revokedAgoMs = Int64(revoked.ago / 1_000)
                reply.revocationNumber = Int64(revoked.number)
            }
            perform(bench.handle(.registered(reply, bindNumber: number)))
        }
    }

    private mutating func deliver(_ answer: Answer) {
        var reply = Mss_Bus_V1_ValidateReply()
        reply.joinedAfterMs = Int64(answer.joinedAfter / 1_000) + (answer.joinedAfter > 0 ? 1 : 0)
        if !answer.isUnknown {
            let isValid = isTrulyValid(at: answer.askedAt)
            reply.verdict = isValid ? .valid : .invalid
            if answer.bind == bind { verdicts.append((answer.askedAt, time, isValid)) }
        }
        let sentAt = start + .microseconds(answer.sentAt)
        perform(bench.handle(.validated(reply, bindNumber: answer.bind, askedAt: sentAt)))
    }

    private mutating func perform(_ actions: [SessionAction]) {
        for action in actions {
            switch action {
            case .fetch(let page): schedule(.page(Int(page.channelID), after: page.after.value), in: below(20_000))
            case .open(let identity, _, _, _, _):
                schedule(.storeRegisters(bind: identity.bindNumber), in: below(30_000))
            case .validate(_, _, _, let number): ask(number)
            case .push(let batch, _, let channelID): judge(batch, Int(channelID))
            case .close: faults.append("closed at \(time)")
            default: break
            }
        }
    }

    private mutating func ask(_ number: UInt32) {
        let arrival = time + below(10_000)
        let joinedAfter = chance(30) ? below(100_000) : 0
        let askedAt = max(0, joinedAfter > 0 ? arrival - joinedAfter : arrival + below(5_000))
        let endsAt = max(arrival, askedAt + below(100_000))
        let answer = Answer(
            bind: number, sentAt: time, askedAt: askedAt, joinedAfter: arrival - askedAt,
            isUnknown: !isCalm && chance(15))
        schedule(.answer(answer), in: endsAt - time + below(10_000))
        if !answer.isUnknown { schedule(.invalidNotice(askedAt: askedAt), in: endsAt - time + below(50_000)) }
    }

    private func isTrulyValid(at instant: Int) -> Bool { truths.last { $0.at <= instant }?.isValid ?? false }

    // MARK: The judge

    /// Checks the rule for a batch: the tenant was asked at most the verdict lifetime ago, or with lifetime 0 for this
    /// reply, and said valid for this bind. It was asked after the last revocation, and no later answer said invalid.
    private mutating func judge(_ batch: Mss_Device_V1_ChannelBatch, _ channel: Int) {
        let lifetime = Self.lifetimes[channel] * 1_000
        let revocation = acknowledged ?? -1
        let lastNo = verdicts.last { !$0.isValid }?.at ?? -1
        let isCovered = verdicts.contains { verdict in
            let isYoung = lifetime > 0 ? time - verdict.askedAt < lifetime : verdict.at == time
            let isForIt = lifetime > 0 || verdict.askedAt >= pagesAt[channel] ?? 0
            return verdict.isValid && isYoung && isForIt && verdict.askedAt >= revocation && verdict.at >= lastNo
                && isTrulyValid(at: verdict.askedAt)
        }
        if !isCovered { faults.append("\(Self.names[channel]) was sent at \(time) without a verdict") }
        if boundAt < revocation { faults.append("\(Self.names[channel]) was sent at \(time) on a revoked session") }
        pagesAt[channel] = nil
        let ids = batch.entries.map(\.oplogID)
        if ids != Array(shown[channel] + 1...max(shown[channel] + 1, batch.upto)) {
            faults.append("\(Self.names[channel]) showed \(ids) after \(shown[channel])")
        }
        shown[channel] = max(shown[channel], ids.last ?? 0)
    }
}
