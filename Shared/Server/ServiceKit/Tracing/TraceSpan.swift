import Credentials

/// The span of one step of a push, in OTLP's JSON form.
struct TraceSpan: Hashable, Sendable, Encodable {
    private enum CodingKeys: String, CodingKey {
        case traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes
    }

    /// A key and a text value.
    struct Attribute: Hashable, Sendable, Encodable {
        struct Value: Hashable, Sendable, Encodable { let stringValue: String }
        let key: String
        let value: Value

        init(_ key: String, _ value: String) {
            self.key = key
            self.value = Value(stringValue: value)
        }
    }

    let trace: PushTrace
    let step: PushTrace.Step
    let deviceID: String
    /// Nanoseconds since 1970.
    let start: UInt64
    let end: UInt64
    let attributes: [Attribute]

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(HexText.of(trace.id), forKey: .traceId)
        try container.encode(HexText.of(trace.spanID(step, deviceID)), forKey: .spanId)
        if let before = step.before {
            try container.encode(HexText.of(trace.spanID(before, deviceID)), forKey: .parentSpanId)
        }
        try container.encode(step.rawValue, forKey: .name)
        // OTLP kinds: 2 is server, for the call; 1 is internal, for the steps after it.
        try container.encode(step == .push ? 2 : 1, forKey: .kind)
        try container.encode("\(start)", forKey: .startTimeUnixNano)
        try container.encode("\(end)", forKey: .endTimeUnixNano)
        try container.encode(attributes, forKey: .attributes)
    }
}

/// One OTLP request with the spans of one process.
struct TraceRequest: Encodable {
    struct ResourceSpans: Encodable {
        struct Resource: Encodable { let attributes: [TraceSpan.Attribute] }
        struct ScopeSpans: Encodable {
            struct Scope: Encodable { let name: String }
            let scope: Scope
            let spans: [TraceSpan]
        }
        let resource: Resource
        let scopeSpans: [ScopeSpans]
    }

    let resourceSpans: [ResourceSpans]

    /// - Parameter process: the resource attributes of the process.
    init(_ spans: [TraceSpan], of process: [TraceSpan.Attribute]) {
        resourceSpans = [
            ResourceSpans(
                resource: .init(attributes: process),
                scopeSpans: [.init(scope: .init(name: "mobile-sync-service"), spans: spans)])
        ]
    }
}
