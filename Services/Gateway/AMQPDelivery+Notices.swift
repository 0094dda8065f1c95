import AMQP
import BusMessages

extension AMQPDelivery {
    /// The notices of a body, and how many of them were left out because who may publish to its exchange may not say
    /// them; nil: it is no list of notices.
    ///
    /// One queue takes from two exchanges. Validators, which call out, publish to the one that leads to every gateway;
    /// they may end verdicts there, and nothing that comes that way is taken for the store's (SEC10).
    var notices: (taken: [Mss_Bus_V1_GatewayNotice], refused: Int)? {
        guard let all = Mss_Bus_V1_GatewayNotices.elements(of: body) else { return nil }
        let taken = all.filter { notice in
            switch notice.body {
            case .sessionInvalid: exchange == Topology.everyGatewayExchange
            case .oplogs, .superseded, .rereadWaiting, .sessionsRevoked, .disconnect, .parametersKept:
                exchange == Topology.noticesExchange
            // From a newer neighbour; it is dropped by whoever reads it.
            case nil: true
            }
        }
        return (taken, all.count - taken.count)
    }
}
