import AsyncHTTPClient
import BackendCalls
import Foundation
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import SyncModel
import Synchronization

/// Sends every push to another service of the same API as well, after it was answered here, and compares the answers:
/// for who moves from that service to this one, or back. Batches, recalls and revocations are this service's own.
///
/// Callers wait for nothing of it. What the other does not take in time is dropped, and counted.
final class Mirror: Service {
    /// A call and how it was answered here.
    private struct Call: Sendable {
        let name: String
        let uri: String
        let headers: HTTPHeaders
        let body: [UInt8]
        let answer: Answer
    }

    /// What is compared: whether it was taken, and why not.
    struct Answer: Decodable, Hashable {
        let success: Bool
        let msg: String

        /// A push that was taken is told apart by who is connected, and by repeats: both differ between two services.
        func agrees(with other: Answer) -> Bool { success == other.success && (success || msg == other.msg) }
    }

    private struct Target: Decodable {
        let linkToken: String?
    }

    private struct Waiting {
        var calls = 0
        var bytes = 0
    }

    /// Lanes in which calls go one after the other: those for one user or device share one, so their order stays.
    private static let laneCount = 16
    private static let callsMax = 10_000
    private static let bytesMax = 64 << 20
    private static let limit = TimeAmount.seconds(10)
    /// What an API like this goes by.
    private static let passedOn = ["Content-Type", "Content-Encoding"]

    private let url: String
    private let logger: Logger
    private let lanes: [(stream: AsyncStream<Call>, continuation: AsyncStream<Call>.Continuation)]
    private let waiting = Mutex(Waiting())
    private let results: [Result: Counter]

    private enum Result: String, CaseIterable {
        case same, different, failed, dropped
    }

    /// - Parameter url: of the other service, without a path.
    init(url: String, logger: Logger) {
        self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
        self.logger = logger
        lanes = (0..<Self.laneCount).map { _ in
            let made = AsyncStream.makeStream(of: Call.self)
            return (made.stream, made.continuation)
        }
        results = Dictionary(
            uniqueKeysWithValues: Result.allCases.map {
                ($0, Counter(label: "ingest_mirrored", dimensions: [("result", $0.rawValue)]))
            })
    }

    /// Takes a call that was answered; returns at once.
    func take(_ request: IngestRequest, _ answer: HTTPAnswer) {
        // What was not attempted here is repeated by its caller.
        guard case .push = request.call, answer.content.isAttempted, (try? request.query.isDryRun) == false else {
            return
        }
        let isTaken = waiting.withLock { waiting in
            guard waiting.calls < Self.callsMax, waiting.bytes + request.body.count <= Self.bytesMax else {
                return false
            }
            waiting.calls += 1
            waiting.bytes += request.body.count
            return true
        }
        guard isTaken else { return count(.dropped) }
        var headers = HTTPHeaders()
        for name in Self.passedOn {
            if let value = request.head.headers.first(name: name) { headers.add(name: name, value: value) }
        }
        let target = (try? JSONDecoder().decode(Target.self, from: Data(request.body)))?.linkToken ?? ""
        let call = Call(
            name: request.name, uri: request.head.uri, headers: headers, body: request.body,
            answer: Answer(success: answer.content.code.isSuccess, msg: answer.content.code.rawValue))
        lanes[Self.lane(of: target)].continuation.yield(call)
    }

    /// The same for a target in every process and run.
    private static func lane(of target: String) -> Int {
        Int(target.utf8.reduce(UInt32(5_381)) { $0 &* 33 &+ UInt32($1) } % UInt32(laneCount))
    }

    /// Sends until shutdown, and then what waits.
    func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for lane in lanes {
                    group.addTask { for await call in lane.stream { await self.send(call) } }
                }
            }
        } onGracefulShutdown: {
            for lane in self.lanes { lane.continuation.finish() }
        }
    }

    private func send(_ call: Call) async {
        defer {
            waiting.withLock { waiting in
                waiting.calls -= 1
                waiting.bytes -= call.body.count
            }
        }
        var request = HTTPClientRequest(url: url + call.uri)
        request.method = .POST
        request.headers = call.headers
        request.body = .bytes(ByteBuffer(bytes: call.body))
        do {
            let response = try await HTTPClient.shared.execute(request, timeout: Self.limit)
            let body = try await response.body.collect(upTo: 65_536)
            guard response.status == .ok,
                let other = try? JSONDecoder().decode(Answer.self, from: Data(body.readableBytesView))
            else {
                return fault(call, "it answered \(response.status.code)")
            }
            guard call.answer.agrees(with: other) else {
                count(.different)
                return logger.warning(
                    "the mirror answered otherwise",
                    metadata: [
                        "request_id": "\(call.name)", "here": "\(call.answer.msg)", "there": "\(other.msg)",
                    ])
            }
            count(.same)
        } catch {
            fault(call, "\(error)")
        }
    }

    private func fault(_ call: Call, _ reason: String) {
        count(.failed)
        logger.warning(
            "the mirror did not take a call", metadata: ["request_id": "\(call.name)", "reason": "\(reason)"])
    }

    private func count(_ result: Result) { results[result]?.increment() }
}
