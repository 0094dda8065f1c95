import DeliveryHistory
import Foundation
import SyncModel
import Synchronization

/// The tenants' backends: they push at a rate that nothing slows down, one by one and in batches, recall some of it,
/// and repeat every call whose outcome they do not know with the same thirdMsgId (spec H5).
final class TortureBackend: Sendable {
    private struct Answers: Decodable { let results: [TortureAPI.Answer] }

    private struct Item: Encodable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
        let payload: String
        let validTimeEnd: Int64?
        let attributes: [String: Int]?
    }

    private struct Items: Encodable { let items: [Item] }

    private struct Push: Sendable {
        let name: String
        let target: HistoryTarget
        /// Milliseconds since 1970; nil: as the instance says.
        let validUntil: Int64?
    }

    /// Pushes of one call.
    private struct Call: Sendable {
        let instance: String
        var pushes: [Push]
        /// All of them are recalled so long after their answers; nil: as it happens.
        var recallAfter: Duration?
    }

    private static let batchSize = 2...20
    /// A caller of live data gives up after so many attempts: it is of no use later.
    private static let liveAttempts = 6
    /// So many calls with the same live target at one time: they commit side by side.
    private static let liveBurst = 3
    /// Percent of pushes that are stored.
    private static let storedPercent = 95
    /// Percent of pushes with an end of their validity, and of single pushes that are recalled.
    private static let validPercent = 15
    private static let recalledPercent = 4
    /// So many calls are remembered for `medianAnswer`.
    private static let rememberedCalls = 4_000

    private let world: TortureWorld
    private let open = Mutex(0)
    private let random: Mutex<SeededGenerator>
    private let calls = Mutex<[(at: Duration, took: Duration)]>([])

    init(_ world: TortureWorld, seed: UInt64) {
        self.world = world
        random = Mutex(SeededGenerator(seed: seed ^ 0xbac_e2d))
    }

    /// Calls whose answers are not there.
    var openCalls: Int { open.withLock { $0 } }

    private func draw(_ range: Range<Int>) -> Int { random.withLock { Int.random(in: range, using: &$0) } }

    /// Pushes until the run drains; returns when every call has its answer.
    ///
    /// - Parameter rate: pushes per second.
    func run(rate: Int) async {
        await withDiscardingTaskGroup { group in
            let start = ContinuousClock.now
            var (sent, news) = (0, 0)
            while world.phase == .loaded {
                let elapsed = start.duration(to: .now)
                let due = Int(elapsed / .milliseconds(1)) * rate / 1_000
                var calls = world.takeWishes().map(makeCall)
                while sent < due {
                    let more = makeCalls()
                    sent += more.reduce(0) { $0 + $1.pushes.count }
                    calls += more
                }
                // To everybody of one tenant.
                if Int(elapsed / .seconds(1)) >= (news + 1) * 10 {
                    news += 1
                    let instance = drawInstance()
                    let target = TortureWorld.target(instance, TortureWorld.news, "")
                    calls.append(Call(instance: instance, pushes: [push(to: target)]))
                }
                for call in calls { group.addTask { await self.perform(call) } }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    // MARK: Drawing

    private func drawInstance() -> String { TortureWorld.instances[draw(0..<TortureWorld.instances.count)] }

    private func makeCall(for burst: TortureWorld.Burst) -> Call {
        let pushes = (0..<burst.count).map { _ in Push(name: name(), target: burst.target, validUntil: nil) }
        return Call(instance: burst.target.instance, pushes: pushes, recallAfter: burst.recallAfter)
    }

    private func makeCalls() -> [Call] {
        let instance = drawInstance()
        if draw(0..<60) == 0 {
            let count = draw(Self.batchSize.lowerBound..<Self.batchSize.upperBound + 1)
            let pushes =
                draw(0..<2) == 0
                ? pushesToOne(in: instance, count) : (0..<count).map { _ in push(in: instance, ofLive: false) }
            return [Call(instance: instance, pushes: pushes)]
        }
        let first = push(in: instance)
        guard first.target.bizType == TortureWorld.live.bizType else {
            return [Call(instance: instance, pushes: [first])]
        }
        return [Call(instance: instance, pushes: [first])]
            + (1..<Self.liveBurst).map { _ in Call(instance: instance, pushes: [push(to: first.target)]) }
    }

    /// In one channel, so that the order in the call is the order of the ids.
    private func pushesToOne(in instance: String, _ count: Int) -> [Push] {
        let users = world.busyUsers
        let kind = draw(0..<2) == 0 ? TortureWorld.chat : TortureWorld.checked
        let target = TortureWorld.target(instance, kind, "user-\(users[draw(0..<users.count)])")
        return (0..<count).map { _ in push(to: target) }
    }

    /// - Parameter ofLive: it may be live, too: as a call of its own, since its caller gives up.
    private func push(in instance: String, ofLive: Bool = true) -> Push {
        let kind = kind(draw(0..<(ofLive ? 100 : Self.storedPercent)), instance)
        let number: Int
        switch kind.bizType {
        case TortureWorld.lock.bizType: number = draw(0..<world.devicesPerInstance)
        // No stranger binds these users with a session that counts.
        case TortureWorld.solo.bizType, TortureWorld.checkedSolo.bizType:
            number = draw(0..<world.usersPerInstance / 2) * 2 + 1
        default: number = draw(0..<world.usersPerInstance)
        }
        let target = TortureWorld.target(
            instance, kind, kind.kind == .device ? "device-\(number)" : "user-\(number)")
        return push(to: target)
    }

    private func kind(_ percent: Int, _ instance: String) -> TortureWorld.Kind {
        switch percent {
        case 0..<42: TortureWorld.chat
        case 42..<65: TortureWorld.checked
        case 65..<82: TortureWorld.lock
        case 82..<Self.storedPercent: TortureWorld.solo(in: instance)
        default: TortureWorld.live
        }
    }

    private func name() -> String { "push-\(world.next())" }

    /// A push, a part of them with an end: some seconds from now, or up to two hours.
    private func push(to target: HistoryTarget) -> Push {
        let mayEnd = target.bizType != TortureWorld.live.bizType && !target.kind.isGlobal
        guard mayEnd, draw(0..<100) < Self.validPercent else {
            return Push(name: name(), target: target, validUntil: nil)
        }
        let seconds = draw(0..<3) == 0 ? draw(5..<30) : draw(60..<7_200)
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        return Push(name: name(), target: target, validUntil: now + Int64(seconds) * 1_000)
    }

    // MARK: Calls

    /// Repeats a call, at the next API each time, until every push is answered or the run is over.
    private func perform(_ call: Call) async {
        open.withLock { $0 += 1 }
        defer { open.withLock { $0 -= 1 } }
        begin(call)
        var api = draw(0..<world.stack.apis.count)
        var left = call.pushes
        var attempts = 0
        while !left.isEmpty, world.phase != .over {
            attempts += 1
            for push in left { world.history.observe(called(push)) }
            let answers = await attempt(Call(instance: call.instance, pushes: left), api)
            var again: [Push] = []
            for (index, push) in left.enumerated() {
                let answer = answers.map { $0[index] }
                world.count("answers: \(answer?.msg ?? "none")")
                if !note(answer, of: push) { again.append(push) }
            }
            left = again
            if left.isEmpty { break }
            if attempts >= Self.liveAttempts, left[0].target.bizType == TortureWorld.live.bizType {
                for push in left { world.history.observe(.abandoned(push: push.name)) }
                return
            }
            api = (api + 1) % world.stack.apis.count
            try? await Task.sleep(for: .milliseconds(draw(100..<1_000)))
        }
        if left.isEmpty { await recall(call) }
    }

    private func begin(_ call: Call) {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        for push in call.pushes {
            let isLive = push.target.bizType == TortureWorld.live.bizType
            let isSolo = push.target.bizType == TortureWorld.solo(in: push.target.instance).bizType
            let elapsed = world.history.elapsed
            let validUntil = push.validUntil.map { elapsed + .milliseconds($0 - now) }
            if let validUntil { world.ledger.began(push.name, validUntil: validUntil) }
            world.history.observe(
                .invoked(
                    push: push.name, to: push.target, reach: isLive ? .optional : isSolo ? .anyone : .everyone,
                    validUntil: validUntil))
        }
        if call.pushes.count > 1 { world.history.observe(.inOneCall(pushes: call.pushes.map(\.name))) }
    }

    private func called(_ push: Push) -> PresenceEvent {
        let target = push.target
        let user = target.kind == .user ? Int(target.target.dropFirst("user-".count)) : nil
        let isShared =
            target.kind == .user && (TortureWorld.isForged(target.instance) || TortureWorld.isShared(user ?? 0))
        return .called(push: push.name, to: target, isShared: isShared)
    }

    /// - Returns: whether the push has its answer.
    private func note(_ answer: TortureAPI.Answer?, of push: Push) -> Bool {
        let history = world.history
        history.observe(.answered(push: push.name, as: presence(answer, push)))
        guard let answer, answer.success, let id = answer.oplogId else {
            history.observe(.uncertain(push: push.name))
            return false
        }
        if answer.msg == "NOT_ONLINE", push.target.bizType == TortureWorld.live.bizType {
            history.observe(.notOnline(push: push.name, id: id))
        } else {
            history.observe(.answered(push: push.name, id: id))
        }
        return true
    }

    /// What an answer says of the devices. Where a verdict or an owner decides, and for everybody's data, nothing
    /// follows from open sessions; neither does anything for a push that ends.
    private func presence(_ answer: TortureAPI.Answer?, _ push: Push) -> PresenceAnswer {
        let kinds = [TortureWorld.chat, TortureWorld.lock, TortureWorld.live].map(\.bizType)
        guard let answer, answer.success, kinds.contains(push.target.bizType), push.validUntil == nil else {
            return .unknown
        }
        return switch answer.msg {
        case "SUCCESS": push.target.bizType == TortureWorld.live.bizType ? .live : .sent
        case "NOT_ONLINE": .notOnline
        default: .unknown
        }
    }

    /// One call; nil when there was no readable answer for each push.
    private func attempt(_ call: Call, _ api: Int) async -> [TortureAPI.Answer]? {
        let items = call.pushes.map { push in
            Item(
                bizType: push.target.bizType,
                linkToken: push.target.kind.isGlobal ? nil : TortureAPI.linkToken(push.target),
                thirdMsgId: push.name, payload: push.target.payload(of: push.name), validTimeEnd: push.validUntil,
                attributes: push.target.bizType == TortureWorld.checked.bizType ? ["level": TortureWorld.level] : nil)
        }
        let isBatch = items.count > 1
        let path = isBatch ? "batch" : call.pushes[0].target.kind.isGlobal ? "global" : "single"
        guard let body = try? isBatch ? JSONEncoder().encode(Items(items: items)) : JSONEncoder().encode(items[0])
        else { return nil }
        let begin = world.history.elapsed
        let answer = await world.api.post(body, to: "sync/\(path)", of: call.instance, api: api)
        remember(begin, world.history.elapsed - begin)
        guard let (status, data) = answer else { return nil }
        world.count("status: \(status)")
        if isBatch {
            let answers = try? JSONDecoder().decode(Answers.self, from: data).results
            return answers.flatMap { $0.count == items.count ? $0 : nil }
        }
        return (try? JSONDecoder().decode(TortureAPI.Answer.self, from: data)).map { [$0] }
    }

    // MARK: Recalls

    /// Recalls what is to be recalled of a call that has its answers, until the recalls have theirs.
    private func recall(_ call: Call) async {
        let pushes: [Push]
        if call.recallAfter != nil {
            pushes = call.pushes
        } else {
            guard call.pushes.count == 1, draw(0..<100) < Self.recalledPercent, !call.pushes[0].target.kind.isGlobal,
                call.pushes[0].target.bizType != TortureWorld.live.bizType
            else { return }
            pushes = call.pushes
        }
        try? await Task.sleep(for: call.recallAfter ?? .milliseconds(draw(0..<2) == 0 ? 0 : draw(0..<8_000)))
        for push in pushes { world.history.observe(.recallBegan(push: push.name)) }
        for push in pushes { await recall(push) }
    }

    private func recall(_ push: Push) async {
        var api = draw(0..<world.stack.apis.count)
        while world.phase != .over {
            let answer = await world.api.recall(push.name, to: push.target, api: api)
            world.count("answers to recalls: \(answer?.msg ?? "none")")
            if let answer, answer.success {
                // The ledger after the answer: a frame behind this moment is behind the answer.
                world.ledger.recalled(push.name, at: world.history.elapsed)
                return world.history.observe(.recalled(push: push.name))
            }
            if answer?.msg == "ARGS_IS_NULL" {
                return world.history.ask {
                    $0.add(.stored, world.history.elapsed, "\(push.name) was answered, and its recall does not find it")
                }
            }
            api += 1
            try? await Task.sleep(for: .milliseconds(draw(100..<1_000)))
        }
    }

    // MARK: How long answers take

    private func remember(_ at: Duration, _ took: Duration) {
        calls.withLock { calls in
            calls.append((at, took))
            if calls.count > Self.rememberedCalls { calls.removeFirst(Self.rememberedCalls / 2) }
        }
    }

    /// The median time until the answer of calls that began between two moments; nil: fewer than 20 did.
    func medianAnswer(from: Duration, to: Duration) -> Duration? {
        let times = calls.withLock { $0.filter { $0.at >= from && $0.at < to }.map(\.took) }.sorted()
        return times.count < 20 ? nil : times[times.count / 2]
    }
}
