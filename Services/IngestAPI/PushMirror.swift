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

/// Sends a copy of every answered push to another service with the same API, and compares the answers. It serves a
/// move from that service to this one, or back. Batches, recalls and revocations are not copied.
///
/// Callers never wait for the other service. Copies that exceed the queue's limits are dropped and counted.
final class PushMirror: Service {
    /// A call and its answer from this service.
    private struct Call: Sendable {
        let name: String
        let uri: String
        let headers: HTTPHeaders
        let body: [UInt8]
        let answer: Answer
    }

    /// The compared part of an answer.
    struct Answer: Decodable, Hashable {
        let success: Bool
        let msg: String

        /// Whether two answers mean the same. Codes of successful answers can differ, because they depend on connected
        /// devices and on earlier calls, which differ between two services.
        func agrees(with other: Answer) -> Bool { success == other.success && (success || msg == other.msg) }
    }

    private struct Target: Decodable {
        let linkToken: String?
    }

    private struct Queued {
        var calls = 0
        var bytes = 0
    }

    /// Queues that each send one call at a time. Calls for one user or device share a queue, so they keep their order.
    private static let queueCount = 16
    private static let callsMax = 10_000
    private static let bytesMax = 64 << 20
    private static let timeout = TimeAmount.seconds(10)
    /// The headers that the API reads.
    private static let forwardedHeaders = ["Content-Type", "Content-Encoding"]

    private let url: String
    private let logger: Logger
    private let queues: [(stream: AsyncStream<Call>, continuation: AsyncStream<Call>.Continuation)]
    private let waiting = Mutex(Queued())
    private let results: [Result: Counter]

    private enum Result: String, CaseIterable {
        case same, different, failed, dropped
    }

    /// - Parameter url: of the other service, without a path.
    init(url: String, logger: Logger) {
        self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
        self.logger = logger
        queues = (0..<Self.queueCount).map { _ in
            let made = AsyncStream.makeStream(of: Call.self)
            return (made.stream, made.continuation)
        }
        results = Dictionary(
            uniqueKeysWithValues: Result.allCases.map {
                ($0, Counter(label: "ingest_mirrored", dimensions: [("result", $0.rawValue)]))
            })
    }

    /// Enqueues a copy of an answered call, or drops it; never waits.
    func enqueue(_ request: IngestRequest, _ answer: HTTPAnswer) {
        // The caller repeats a call that was not attempted, so its first copy is not sent.
        guard case .push = request.call, answer.content.isAttempted, (try? request.query.isDryRun) == false else {
            return
        }
        let isAccepted = waiting.withLock { waiting in
            guard waiting.calls < Self.callsMax, waiting.bytes + request.body.count <= Self.bytesMax else {
                return false
            }
            waiting.calls += 1
            waiting.bytes += request.body.count
            return true
        }
        guard isAccepted else { return count(.dropped) }
        var headers = HTTPHeaders()
        for name in Self.forwardedHeaders {
            if let value = request.head.headers.first(name: name) { headers.add(name: name, value: value) }
        }
        let target = (try? JSONDecoder().decode(Target.self, from: Data(request.body)))?.linkToken ?? ""
        let call = Call(
            name: request.name, uri: request.head.uri, headers: headers, body: request.body,
            answer: Answer(success: answer.content.code.isSuccess, msg: answer.content.code.rawValue))
        queues[Self.queue(of: target)].continuation.yield(call)
    }

    /// The queue of a target: the same one in every process and run.
    private static func queue(of target: String) -> Int {
        Int(target.utf8.reduce(UInt32(5_381)) { $0 &* 33 &+ UInt32($1) } % UInt32(queueCount))
    }

    /// Sends until shutdown, then sends the queued calls and returns.
    func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for queue in queues {
                    group.addTask { for await call in queue.stream { await self.send(call) } }
                }
            }
        } onGracefulShutdown: {
            for queue in self.queues { queue.continuation.finish() }
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
            let response = try await HTTPClient.shared.execute(request, timeout: Self.timeout)
            let body = try await response.body.collect(upTo: 65_536)
            guard response.status == .ok,
                let other = try? JSONDecoder().decode(Answer.self, from: Data(body.readableBytesView))
            else {
                return recordFailure(call, "HTTP status \(response.status.code)")
            }
            guard call.answer.agrees(with: other) else {
                count(.different)
                return logger.warning(
                    "the mirror gave another answer",
                    metadata: [
                        "request_id": "\(call.name)", "here": "\(call.answer.msg)", "there": "\(other.msg)",
                    ])
            }
            count(.same)
        } catch {
            recordFailure(call, "\(error)")
        }
    }

    private func recordFailure(_ call: Call, _ reason: String) {
        count(.failed)
        logger.warning(
            "the mirror call failed", metadata: ["request_id": "\(call.name)", "reason": "\(reason)"])
    }

    private func count(_ result: Result) { results[result]?.increment() }
}
