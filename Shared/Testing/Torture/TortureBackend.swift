import DeliveryHistory
import Foundation
import SyncModel
import Synchronization

/// The backends of a torture run. They push at a fixed rate, single pushes and batches, and recall some pushes. They
/// repeat each call without a response or with a retryable one, under the same thirdMsgId (H5).
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
        /// Milliseconds since 1970. The value is nil for the retention of the instance.
        let validUntil: Int64?
    }

    /// Pushes of one call.
    private struct Call: Sendable {
        let instance: String
        var pushes: [Push]
        /// Delay from the responses to the recalls of all pushes. Nil to draw the recalls.
        var recallAfter: Duration?
    }

    private static let batchSize = 2...20
    /// After this many attempts a caller of non-persistent pushes gives up.
    private static let liveAttempts = 6
    /// Number of concurrent calls for the same non-persistent target, so that they share a transaction.
    private static let liveBurst = 3
    /// Percentage of persistent pushes.
    private static let storedPercent = 95
    /// Percentage of pushes with an end of validity, and of single pushes that are recalled.
    private static let validPercent = 15
    private static let recalledPercent = 4
    /// Number of calls that `medianAnswer` can use.
    private static let rememberedCalls = 4_000

    private let world: TortureWorld
    private let open = Mutex(0)
    private let random: SeededDraws
    private let calls = Mutex<[(at: Duration, took: Duration)]>([])

    init(_ world: TortureWorld, seed: UInt64) {
        self.world = world
        random = SeededDraws(seed: seed ^ 0xbac_e2d)
    }

    /// Number of calls without a response.
    var openCalls: Int { open.withLock { $0 } }

    /// Pushes until the run drains, and returns after the last response.
    ///
    /// - Parameter rate: pushes per second.
    func run(rate: Int) async {
        await withDiscardingTaskGroup { group in
            let start = ContinuousClock.now
            var (sent, globalPushes) = (0, 0)
            while world.phase == .loaded {
                let elapsed = start.duration(to: .now)
                let due = Int(elapsed / .milliseconds(1)) * rate / 1_000
                var calls = world.removeRequestedBursts().map(makeCall)
                while sent < due {
                    let more = makeCalls()
                    sent += more.reduce(0) { $0 + $1.pushes.count }
                    calls += more
                }
                // A global push every 10 s.
                if Int(elapsed / .seconds(1)) >= (globalPushes + 1) * 10 {
                    globalPushes += 1
                    let instance = drawInstance()
                    let target = TortureWorld.target(instance, TortureWorld.news, "")
                    calls.append(Call(instance: instance, pushes: [push(to: target)]))
                }
                for call in calls { group.addTask { await self.perform(call) } }
                // The next turn makes the pushes that have become due.
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    // MARK: Drawing

    private func drawInstance() -> String { TortureWorld.instances[random.draw(0..<TortureWorld.instances.count)] }

    private func makeCall(for burst: TortureWorld.Burst) -> Call {
        let pushes = (0..<burst.count).map { _ in Push(name: name(), target: burst.target, validUntil: nil) }
        return Call(instance: burst.target.instance, pushes: pushes, recallAfter: burst.recallAfter)
    }

    private func makeCalls() -> [Call] {
        let instance = drawInstance()
        if random.draw(0..<60) == 0 {
            let count = random.draw(Self.batchSize.lowerBound..<Self.batchSize.upperBound + 1)
            let pushes =
                random.draw(0..<2) == 0
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

    /// Pushes to one channel, so that the order in the call must be the order of the ids.
    private func pushesToOne(in instance: String, _ count: Int) -> [Push] {
        let users = world.busyUsers
        let kind = random.draw(0..<2) == 0 ? TortureWorld.chat : TortureWorld.checked
        let target = TortureWorld.target(instance, kind, "user-\(users[random.draw(0..<users.count)])")
        return (0..<count).map { _ in push(to: target) }
    }

    /// - Parameter ofLive: whether the push can be non-persistent. Such a push is a call of its own, since its caller
    ///   gives up.
    private func push(in instance: String, ofLive: Bool = true) -> Push {
        let kind = kind(random.draw(0..<(ofLive ? 100 : Self.storedPercent)), instance)
        let number: Int
        switch kind.bizType {
        case TortureWorld.lock.bizType: number = random.draw(0..<world.devicesPerInstance)
        // Only users that no misbehaving device binds with a valid session.
        case TortureWorld.solo.bizType, TortureWorld.checkedSolo.bizType:
            number = random.draw(0..<world.usersPerInstance / 2) * 2 + 1
        default: number = random.draw(0..<world.usersPerInstance)
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

    /// A push. Some have an end of validity: in 5 to 30 s, or in 1 minute to 2 hours.
    private func push(to target: HistoryTarget) -> Push {
        let mayEnd = target.bizType != TortureWorld.live.bizType && !target.kind.isGlobal
        guard mayEnd, random.draw(0..<100) < Self.validPercent else {
            return Push(name: name(), target: target, validUntil: nil)
        }
        let seconds = random.draw(0..<3) == 0 ? random.draw(5..<30) : random.draw(60..<7_200)
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        return Push(name: name(), target: target, validUntil: now + Int64(seconds) * 1_000)
    }

    // MARK: Calls

    /// Repeats a call until every push is answered or the run is over. Each attempt goes to the next ingest process.
    private func perform(_ call: Call) async {
        open.withLock { $0 += 1 }
        defer { open.withLock { $0 -= 1 } }
        begin(call)
        var api = random.draw(0..<world.stack.apis.count)
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
                if !record(answer, of: push) { again.append(push) }
            }
            left = again
            if left.isEmpty { break }
            if attempts >= Self.liveAttempts, left[0].target.bizType == TortureWorld.live.bizType {
                for push in left { world.history.observe(.abandoned(push: push.name)) }
                return
            }
            api = (api + 1) % world.stack.apis.count
            await random.pause(100..<1_000)
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

    /// Records a response.
    ///
    /// - Returns: whether the push needs no further attempt.
    private func record(_ answer: TortureAPI.Answer?, of push: Push) -> Bool {
        let history = world.history
        history.observe(.answered(push: push.name, as: presence(answer, push)))
        guard let answer, answer.success, let id = answer.oplogId else {
            guard let answer, !answer.success, !answer.retryable else {
                history.observe(.uncertain(push: push.name))
                return false
            }
            history.ask { [elapsed = history.elapsed] checker in
                checker.add(.attempted, elapsed, "\(push.name) was refused: \(answer.msg)")
            }
            return true
        }
        if answer.msg == "NOT_ONLINE", push.target.bizType == TortureWorld.live.bizType {
            history.observe(.notOnline(push: push.name, id: id))
        } else {
            history.observe(.answered(push: push.name, id: id))
        }
        return true
    }

    /// The response's statement about devices. It is unknown for checked, single-device and global data and for a push
    /// that expires, because open sessions do not determine it there.
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

    /// One call. The value is nil if there is no readable response for each push.
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

    /// Recalls the pushes of an answered call that are drawn for it, until each recall succeeds.
    private func recall(_ call: Call) async {
        let pushes: [Push]
        if call.recallAfter != nil {
            pushes = call.pushes
        } else {
            guard call.pushes.count == 1, random.draw(0..<100) < Self.recalledPercent,
                !call.pushes[0].target.kind.isGlobal,
                call.pushes[0].target.bizType != TortureWorld.live.bizType
            else { return }
            pushes = call.pushes
        }
        try? await Task.sleep(
            for: call.recallAfter ?? .milliseconds(random.draw(0..<2) == 0 ? 0 : random.draw(0..<8_000)))
        for push in pushes { world.history.observe(.recallBegan(push: push.name)) }
        for push in pushes { await recall(push) }
    }

    private func recall(_ push: Push) async {
        var api = random.draw(0..<world.stack.apis.count)
        while world.phase != .over {
            let answer = await world.api.recall(push.name, to: push.target, api: api)
            world.count("answers to recalls: \(answer?.msg ?? "none")")
            if let answer, answer.success {
                // The ledger records the recall after the response, so that a later frame is a violation.
                world.ledger.recalled(push.name, at: world.history.elapsed)
                return world.history.observe(.recalled(push: push.name))
            }
            if answer?.msg == "ARGS_IS_NULL" {
                return world.history.ask {
                    $0.add(.stored, world.history.elapsed, "\(push.name) was answered, but its recall does not find it")
                }
            }
            api += 1
            await random.pause(100..<1_000)
        }
    }

    // MARK: Response times

    private func remember(_ at: Duration, _ took: Duration) {
        calls.withLock { calls in
            calls.append((at, took))
            if calls.count > Self.rememberedCalls { calls.removeFirst(Self.rememberedCalls / 2) }
        }
    }

    /// The median response time of calls that began in a time range. The value is nil for fewer than 20 calls.
    func medianAnswer(from: Duration, to: Duration) -> Duration? {
        let times = calls.withLock { $0.filter { $0.at >= from && $0.at < to }.map(\.took) }.sorted()
        return times.count < 20 ? nil : times[times.count / 2]
    }
}
