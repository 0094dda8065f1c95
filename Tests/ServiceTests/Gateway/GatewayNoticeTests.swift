import BusMessages
import Foundation
import SwiftProtobuf
import Testing

@testable import AMQP
@testable import Gateway

@Suite("Exchanges from which a gateway accepts notices")
struct GatewayNoticeTests {
    /// One notice of each kind.
    private static let notices: [Mss_Bus_V1_GatewayNotice] = [
        .with { $0.oplogs.channelID = 1 }, .with { $0.superseded.deviceID = "d" },
        .with { $0.rereadWaiting.deviceID = "d" }, .with { $0.sessionsRevoked.userID = "u" },
        .with { $0.disconnect.deviceID = "d" }, .with { $0.sessionInvalid.userID = "u" },
    ]

    private func delivery(_ body: [UInt8], by exchange: String) -> AMQPDelivery {
        AMQPDelivery(
            body: body, isRedelivered: false, replyTo: nil, receivedAt: .now, exchange: exchange, generation: 1,
            deliveryTag: 1)
    }

    @Test("SEC10: only ends of verdicts are accepted from the validators' exchange")
    func validators() throws {
        let body = Mss_Bus_V1_GatewayNotices.body(Self.notices)
        let notices = try #require(delivery(body, by: Topology.everyGatewayExchange).notices)
        #expect(notices.taken == [Self.notices[5]] && notices.refused == 5)
    }

    @Test("SEC10: all other notices are accepted from the writers' exchange only")
    func writers() throws {
        let body = Mss_Bus_V1_GatewayNotices.body(Self.notices)
        let notices = try #require(delivery(body, by: Topology.noticesExchange).notices)
        #expect(notices.taken == Array(Self.notices[..<5]) && notices.refused == 1)
        for exchange in ["", AnswerExchange.verdicts.rawValue] {
            let others = try #require(delivery(body, by: exchange).notices)
            #expect(others.taken.isEmpty && others.refused == 6)
        }
    }

    @Test("an unknown kind of notice is not a fault; a body that is not a list of notices is")
    func others() throws {
        let newer = try #require(delivery([0x12, 0x03, 0x7A, 0x01, 0x00], by: Topology.noticesExchange).notices)
        #expect(newer.taken.count == 1 && newer.refused == 0)
        #expect(delivery([0xff], by: Topology.noticesExchange).notices == nil)
    }
}
