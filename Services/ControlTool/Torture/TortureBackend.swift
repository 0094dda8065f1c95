import AsyncHTTPClient
import DeliveryHistory
import Foundation
import NIOCore
import NIOHTTP1
import SyncModel
import Synchronization

/// The tenants' backends: they push at a rate that nothing slows down, one by one and in batches, and repeat every call
/// whose answer says that a repeat can help, or that had none, with the same thirdMsgId (spec H5).
final class TortureBackend: Sendable {
    private struct Answer: Decodable, Sendable {
        let success: Bool
        let msg: String
        let retryable: Bool
        let oplogId: Int64?
    }

    private struct Answers: Decodable { let results: [Answer] }

    private struct Item: Encodable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
        let payload: String
    }

    private struct Items: Encodable { let items: [Item] }

    /// Pushes of one call.
    private struct Call: Sendable {
        let instance: String
        let pushes: [(name: String, target: HistoryTarget)]
    }

    private static let timeout = TimeAmount.seconds(10)
    private static let batchSize = 2...20

    private let world: TortureWorld
    private let client: HTTPClient
    private let open = Mutex(0)
    private let random: Mutex<SeededGenerator>

    init(_ world: TortureWorld, seed: UInt64) {
        self.world = world
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 200
        client = HTTPClient(configuration: configuration)
        random = Mutex(SeededGenerator(seed: seed))
    }

    /// Calls whose outcome is not known yet.
    var openCalls: Int { open.withLock { $0 } }

    func stop() async { try? await client.shutdown() }

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
                while sent < due {
                    let call = makeCall()
                    sent += call.pushes.count
                    group.addTask { await self.perform(call) }
                }
                // To everybody of one tenant.
                if Int(elapsed / .seconds(1)) >= (news + 1) * 10 {
                    news += 1
                    let call = makeCall(of: TortureWorld.news)
                    group.addTask { await self.perform(call) }
                }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    private func makeCall(of kind: TortureWorld.Kind? = nil) -> Call {
        let instance = TortureWorld.instances[draw(0..<TortureWorld.instances.count)]
        let isBatch = kind == nil && draw(0..<100) == 0
        let count = isBatch ? draw(Self.batchSize.lowerBound..<Self.batchSize.upperBound + 1) : 1
        return Call(
            instance: instance,
            pushes: (0..<count).map { _ in
                let kind = kind ?? Self.kind(draw(0..<100))
                let number =
                    kind.kind == .device ? draw(0..<world.devicesPerInstance) : draw(0..<world.usersPerInstance)
                let target = TortureWorld.target(
                    instance, kind, kind.kind == .device ? "device-\(number)" : "user-\(number)")
                return ("push-\(world.next())", target)
            })
    }

    private static func kind(_ percent: Int) -> TortureWorld.Kind {
        switch percent {
        case 0..<55: TortureWorld.chat
        case 55..<80: TortureWorld.checked
        default: TortureWorld.lock
        }
    }

    /// Repeats a call, at the next API each time, until every push is answered or the run is over.
    private func perform(_ call: Call) async {
        open.withLock { $0 += 1 }
        defer { open.withLock { $0 -= 1 } }
        for (name, target) in call.pushes { world.history.observe(.invoked(push: name, to: target)) }
        var api = draw(0..<world.stack.apis.count)
        var left = call.pushes
        while !left.isEmpty, world.phase != .over {
            let answers = await attempt(Call(instance: call.instance, pushes: left), api)
            var again: [(name: String, target: HistoryTarget)] = []
            for (index, push) in left.enumerated() {
                let answer = answers.map { $0[index] }
                world.count("answers: \(answer?.msg ?? "none")")
                if let answer, answer.success, let id = answer.oplogId {
                    world.history.observe(.answered(push: push.name, id: id))
                } else if let answer, !answer.retryable {
                    world.history.ask { [elapsed = world.history.elapsed] checker in
                        checker.add(.attempted, elapsed, "\(push.name) is refused for good: \(answer.msg)")
                    }
                } else {
                    world.history.observe(.uncertain(push: push.name))
                    again.append(push)
                }
            }
            left = again
            guard !left.isEmpty else { return }
            api = (api + 1) % world.stack.apis.count
            try? await Task.sleep(for: .milliseconds(draw(100..<1_000)))
        }
    }

    /// One call; nil when there was no readable answer for each push.
    private func attempt(_ call: Call, _ api: Int) async -> [Answer]? {
        let items = call.pushes.map { name, target in
            Item(
                bizType: target.bizType, linkToken: target.kind.isGlobal ? nil : Self.linkToken(target),
                thirdMsgId: name,
                payload: target.payload(of: name))
        }
        let isBatch = items.count > 1
        let path = isBatch ? "batch" : call.pushes[0].target.kind.isGlobal ? "global" : "single"
        var request = HTTPClientRequest(
            url: "http://127.0.0.1:\(world.stack.apis[api])/webapi/sync/\(path)?instanceId=\(call.instance)")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        do {
            let body = isBatch ? try JSONEncoder().encode(Items(items: items)) : try JSONEncoder().encode(items[0])
            request.body = .bytes(ByteBuffer(bytes: body))
            let response = try await client.execute(request, timeout: Self.timeout)
            let bytes = try await response.body.collect(upTo: 1 << 20)
            world.count("status: \(response.status.code)")
            let data = Data(bytes.readableBytesView)
            guard isBatch else { return [try JSONDecoder().decode(Answer.self, from: data)] }
            let answers = try JSONDecoder().decode(Answers.self, from: data).results
            return answers.count == items.count ? answers : nil
        } catch {
            return nil
        }
    }

    /// A device without its tenant's name before it.
    private static func linkToken(_ target: HistoryTarget) -> String {
        target.kind == .device ? String(target.target.dropFirst(target.instance.utf8.count + 1)) : target.target
    }
}
