import Foundation
import SyncModel
import Testing

@testable import ServiceKit

@Suite("Traces of pushes") struct PushTraceTests {
    private static func trace(_ id: String, to target: String = "u") -> PushTrace {
        PushTrace(
            instanceID: InstanceID("w_app"), bizType: BizType("UCHAT"), target: target,
            thirdMessageID: ThirdMessageID(id))
    }

    @Test("the identity of a push is the identity of its trace, and two identities never collide") func identity() {
        #expect(Self.trace("a") == Self.trace("a") && Self.trace("a") != Self.trace("b"))
        #expect(Self.trace("a", to: "ub") != Self.trace("ba", to: "u") && Self.trace("a").id.count == 16)
    }

    @Test("each step has an id of its own, the parent's is that of the step before, and devices have theirs")
    func spans() {
        let trace = Self.trace("a")
        let ids = PushTrace.Step.allCases.map { trace.spanID($0, "d1") }
        #expect(Set(ids).count == 5 && ids.allSatisfy { $0.count == 8 })
        for step in PushTrace.Step.allCases {
            #expect((trace.spanID(step, "d1") == trace.spanID(step, "d2")) == !step.isOfDevice)
        }
        #expect(PushTrace.Step.allCases.map(\.before) == [nil, .push, .store, .handOut, .acknowledge])
    }

    @Test("about one push in N is traced, the same ones by every process") func sampling() {
        let traced = (0..<10_000).count { Self.trace("m\($0)").isTraced(oneIn: 10) }
        #expect((800...1_200).contains(traced))
        #expect((0..<100).allSatisfy { Self.trace("m\($0)").isTraced(oneIn: 1) })
    }

    @Test("a request has the form of OTLP in JSON") func form() throws {
        let trace = Self.trace("a")
        let span = TraceSpan(
            trace: trace, step: .store, deviceID: "", start: 1, end: 2, attributes: [.init("mss.batch", "3")])
        let data = try JSONEncoder().encode(TraceRequest([span], of: [.init("service.name", "s")]))
        let json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let spans = try #require((json["resourceSpans"] as? [[String: Any]])?.first)
        let scope = try #require((spans["scopeSpans"] as? [[String: Any]])?.first)
        let one = try #require((scope["spans"] as? [[String: Any]])?.first)
        #expect(Set(one.keys).isSuperset(of: ["traceId", "spanId", "parentSpanId", "name", "kind", "attributes"]))
        #expect((one["traceId"] as? String)?.count == 32 && (one["parentSpanId"] as? String)?.count == 16)
        #expect(one["startTimeUnixNano"] as? String == "1" && one["name"] as? String == "store")
    }
}
