import AMQP
import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

@testable import MobileSync
@testable import OplogWriter

/// Revokes sessions for tenants and recalls pushes for backends, by the steps of the writer's backend queries: store
/// the change, notify every gateway with a lease, and answer when all gateways have replied.
// Unchecked: see Simulation.
final class SimulatedOperator: @unchecked Sendable {
    /// The number of gateways that have not replied.
    // Unchecked: see Simulation.
    private final class Open: @unchecked Sendable {
        var gateways: Int
        var isCertain = true

        init(_ gateways: Int) { self.gateways = gateways }
    }

    let process: SimulatedProcess
    private let bus: MessageBus
    private let database: SimulatedDatabase
    private static let replyTimeout = Duration.milliseconds(1_500)

    init(_ name: String, number: UInt64, database: SimulatedDatabase, broker: SimulatedBroker) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        self.process = process
        self.database = database
        let bus = MessageBus(
            consumptions: [], answers: [.stored, .taken], replyKey: { "\($0.rawValue) \(process.id)" },
            clock: process.clock,
            logger: process.logger, over: process.connecting(to: broker))
        self.bus = bus
        process.every(.milliseconds(100)) { bus.expireRequests() }
    }

    /// - Parameter whenCertain: called when every gateway has replied, so the session has ended everywhere.
    func revoke(_ user: BoundUser, of instanceID: InstanceID, whenCertain: @escaping () -> Void) {
        let digest = SessionDigest.of(user.sessionID)
        guard let book = database.revoke(UserID(user.userID), digest: digest), book.isComplete else { return }
        notifyGateways(book, whenCertain: whenCertain) { correlation in
            .with {
                $0.sessionsRevoked.instanceID = instanceID.text
                $0.sessionsRevoked.userID = user.userID
                $0.sessionsRevoked.sessionDigest = Data(digest)
                $0.sessionsRevoked.correlation = correlation
            }
        }
    }

    /// - Parameter whenCertain: called when every gateway has replied, so the recall is certain.
    func recall(_ id: ThirdMessageID, of address: ChannelAddress, whenCertain: @escaping () -> Void) {
        guard let (recalled, book) = database.recall(id, of: address), let recalled, book.isComplete else { return }
        notifyGateways(book, whenCertain: whenCertain) { correlation in
            .with { $0.oplogs = .init([recalled], of: address, correlation: correlation) }
        }
    }

    private func notifyGateways(
        _ book: LeaseRecord, whenCertain: @escaping () -> Void,
        _ build: @escaping (_ correlation: UInt64) -> Mss_Bus_V1_GatewayNotice
    ) {
        let open = Open(book.leases.count)
        let answered = Answered(open: open, whenCertain: whenCertain)
        if book.leases.isEmpty { return whenCertain() }
        for gateway in book.gatewayIDs {
            bus.notify(gateway: gateway, timeout: Self.replyTimeout, build) { result in
                if case .success = result {
                    answered.record(isCertain: true)
                } else {
                    answered.record(isCertain: false)
                }
            }
        }
    }

    // Unchecked: see Simulation.
    private struct Answered: @unchecked Sendable {
        let open: Open
        let whenCertain: () -> Void

        func record(isCertain: Bool) {
            open.gateways -= 1
            if !isCertain { open.isCertain = false }
            if open.gateways == 0, open.isCertain { whenCertain() }
        }
    }
}
