/// A requirement for a gateway.
typealias GatewayCase = ConformanceCase<GatewayTarget>

/// All requirements for a gateway. Each part of the specification has a type of its own.
enum GatewayCases {
    /// The cases for every instance, in the order of the specification.
    static let all: [GatewayCase] =
        GatewayTransportCases.all + GatewayFrameStateCases.cases + GatewayFramingCases.all + GatewayTimerCases.all
        + GatewayIdentityCases.all + GatewayBindCases.all + GatewayDeliveryCases.all + GatewayAcknowledgementCases.all
        + GatewayFlowCases.all + GatewaySubscriptionCases.all + GatewayHistoryCases.all + GatewaySummaryCases.all
}
