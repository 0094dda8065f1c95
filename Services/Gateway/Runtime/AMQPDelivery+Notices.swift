import AMQP
import BusMessages

extension AMQPDelivery {
    /// The notices of a body, and the number of notices that were dropped because their exchange may not carry them;
    /// nil: the body is not a list of notices.
    ///
    /// One queue is bound to two exchanges. Validators, which call external endpoints, publish to the exchange that
    /// leads to every gateway. There they may only end verdicts. Any other notice on that exchange is not from a writer
    /// and is dropped (SEC10).
    var notices: (taken: [Mss_Bus_V1_GatewayNotice], refused: Int)? {
        guard let all = Mss_Bus_V1_GatewayNotices.elements(of: body) else { return nil }
        let taken = all.filter { notice in
            switch notice.body {
            case .sessionInvalid: exchange == Topology.everyGatewayExchange
            case .oplogs, .superseded, .rereadWaiting, .sessionsRevoked, .disconnect, .parametersKept:
                exchange == Topology.noticesExchange
            // From a newer build. The receiver ignores it.
            case nil: true
            }
        }
        return (taken, all.count - taken.count)
    }
}
