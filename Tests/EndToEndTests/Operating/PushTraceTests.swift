import Foundation
import TestSupport
import Testing

extension SecondRunningSystem {
    @Suite("Traces of pushes")
    struct PushTraceTests {
        private struct Request: Decodable {
            struct Text: Decodable { let stringValue: String }
            struct Attribute: Decodable {
                let key: String
                let value: Text
            }
            struct Span: Decodable {
                let traceId, spanId, name: String
                let parentSpanId: String?
                let startTimeUnixNano, endTimeUnixNano: String
                let attributes: [Attribute]
            }
            struct Scope: Decodable { let spans: [Span] }
            struct Resource: Decodable { let attributes: [Attribute] }
            struct Spans: Decodable {
                let resource: Resource
                let scopeSpans: [Scope]
            }
            let resourceSpans: [Spans]
        }

        private let stack: Stack

        init() throws { stack = try Stack.running }

        /// The collector's spans of pushes since a time (nanoseconds since 1970), with their service, by trace. The
        /// collector also has spans of other tests.
        private func traces(since start: UInt64) throws -> [String: [(service: String, span: Request.Span)]] {
            let text = try String(contentsOf: stack.folder.appending(path: "traces.jsonl"), encoding: .utf8)
            var traces: [String: [(service: String, span: Request.Span)]] = [:]
            for line in text.split(separator: "\n") {
                let request = try JSONDecoder().decode(Request.self, from: Data(line.utf8))
                for spans in request.resourceSpans {
                    let service = spans.resource.attributes.first { $0.key == "service.name" }?.value.stringValue ?? ""
                    for span in spans.scopeSpans.flatMap(\.spans) {
                        traces[span.traceId, default: []].append((service, span))
                    }
                }
            }
            return traces.filter { _, spans in
                spans.contains { $0.span.name == "push" && UInt64($0.span.startTimeUnixNano) ?? 0 >= start }
            }
        }

        @Test(
            "one push in ten makes one trace: call, transaction, hand-out, acknowledgement, confirmation")
        func oneTrace() async throws {
            let start = UInt64(Date.now.timeIntervalSince1970 * 1_000_000_000)
            let device = TestDevice(stack, user: "trace-u", device: "trace-d")
            try await device.connected {
                let caller = Caller(apis: stack.apis)
                for number in 0..<60 {
                    _ = try await caller.push("UCHAT", to: "trace-u", id: "trace-\(number)", payload: "\(number)")
                }
                try await eventually("all are there", within: .seconds(30)) {
                    device.payloads("UCHAT").count == 60
                }
            }
            let steps = ["push", "store", "hand out", "acknowledge", "confirm"]
            try await eventually("a whole trace", within: .seconds(30)) {
                // The last line can be incomplete.
                (try? traces(since: start))?.values.contains { Set($0.map(\.span.name)) == Set(steps) } ?? false
            }
            let whole = try traces(since: start).values.filter {
                Set($0.map(\.span.name)) == Set(steps) && $0.count == steps.count
            }
            for trace in whole {
                let spans = Dictionary(uniqueKeysWithValues: trace.map { ($0.span.name, $0) })
                #expect(
                    steps.compactMap { spans[$0]?.service } == [
                        "mss-ingest", "mss-oplog-writer", "mss-gateway", "mss-gateway", "mss-gateway",
                    ])
                #expect(spans["push"]?.span.parentSpanId == nil)
                for (step, next) in zip(steps, steps.dropFirst()) {
                    #expect(spans[next]?.span.parentSpanId == spans[step]?.span.spanId, "\(step) leads to \(next)")
                }
                #expect(trace.allSatisfy { $0.span.startTimeUnixNano <= $0.span.endTimeUnixNano })
                // No attribute names a user or contains a payload.
                #expect(trace.flatMap(\.span.attributes).allSatisfy { !$0.value.stringValue.contains("trace-") })
            }
            // About one in ten; every process samples the same pushes.
            let mine = try traces(since: start)
            #expect((1...30).contains(mine.count))
        }
    }
}
