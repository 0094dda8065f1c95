import AsyncHTTPClient
import Foundation
import Glibc
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import ServiceLifecycle
package import SyncModel
import Synchronization

/// Collects spans of traced pushes and sends them to a collector (OTLP over HTTP, JSON).
///
/// It never delays a push: spans that the collector does not accept are dropped and counted.
package final class PushTracer: Service, Sendable {
    private struct State {
        var spans: [TraceSpan] = []
        var isRefused = false
    }

    private static let interval = Duration.seconds(2)
    /// Maximum number of spans that wait.
    private static let spansMax = 20_000
    private static let limit = TimeAmount.seconds(5)

    private let endpoint: String
    private let oneIn: Int
    private let process: [TraceSpan.Attribute]
    private let logger: Logger
    private let state = Mutex(State())
    private let dropped = Counter(label: "mss_trace_spans_dropped")

    /// - Parameters:
    ///   - endpoint: the collector's URL, such as `http://collector:4318/v1/traces`.
    ///   - oneIn: one push in this many is traced.
    ///   - service: the name of this process.
    init(endpoint: String, oneIn: Int, service: String, version: String, logger: Logger) {
        self.endpoint = endpoint
        self.oneIn = oneIn
        self.logger = logger
        process = [
            .init("service.name", service), .init("service.version", version),
            .init("service.instance.id", UUID().uuidString),
        ]
    }

    /// The trace of a push; nil if this push is not traced.
    package func trace(
        of instanceID: InstanceID, _ bizType: BizType, to target: String, _ thirdMessageID: ThirdMessageID
    ) -> PushTrace? {
        let trace = PushTrace(
            instanceID: instanceID, bizType: bizType, target: target, thirdMessageID: thirdMessageID)
        return trace.isTraced(oneIn: oneIn) ? trace : nil
    }

    /// Nanoseconds since 1970.
    package static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Records a completed step that ends now.
    ///
    /// - Parameters:
    ///   - start: the begin of the step, by `now`.
    ///   - attributes: must not contain users, sessions or payloads.
    package func record(
        _ step: PushTrace.Step, of trace: PushTrace, on deviceID: String = "", since start: UInt64,
        _ attributes: KeyValuePairs<String, String> = [:]
    ) {
        let span = TraceSpan(
            trace: trace, step: step, deviceID: deviceID, start: start, end: max(start, Self.now),
            attributes: attributes.map { TraceSpan.Attribute($0.key, $0.value) })
        let isAccepted = state.withLock { state in
            guard state.spans.count < Self.spansMax else { return false }
            state.spans.append(span)
            return true
        }
        if !isAccepted { dropped.increment() }
    }

    /// Sends the collected spans every two seconds and at the end.
    package func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.interval) }
            await send()
        }
    }

    private func send() async {
        let spans = state.withLock { state in
            defer { state.spans = [] }
            return state.spans
        }
        guard !spans.isEmpty, let body = try? JSONEncoder().encode(TraceRequest(spans, of: process)) else { return }
        var request = HTTPClientRequest(url: endpoint)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: body))
        var fault = ""
        do {
            let status = try await HTTPClient.shared.execute(request, timeout: Self.limit).status
            if !(200..<300).contains(status.code) { fault = "HTTP status \(status.code)" }
        } catch {
            fault = "\(error)"
        }
        let isRefused = !fault.isEmpty
        if isRefused { dropped.increment(by: spans.count) }
        let hasChanged = state.withLock { state in
            defer { state.isRefused = isRefused }
            return state.isRefused != isRefused
        }
        guard hasChanged else { return }
        isRefused
            ? logger.warning("the trace collector does not accept spans", metadata: ["error": "\(fault)"])
            : logger.info("the trace collector accepts spans again")
    }
}
