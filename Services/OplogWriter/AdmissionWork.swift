import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Counts what all processes count together: nonces of signed requests, and pushes of a day (spec H9).
struct AdmissionWork: LaneWork {
    typealias Command = Mss_Bus_V1_AdmissionCommand

    static let queue = CommandQueue.admission
    static let groupBodies = 64

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AdmissionCommands.elements(of: body) }

    /// A command and where its answer goes.
    private struct Order<Wish> {
        let wish: Wish
        let correlation: UInt64
        let replyTo: String
    }

    /// Nonces first: a signed request waits for its own, while pushes of a day are mostly taken in advance.
    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        var claims: [Order<AdmissionStore.Claim>] = []
        var takings: [Order<AdmissionStore.QuotaWish>] = []
        for task in tasks {
            for command in task.commands {
                switch command.body {
                case .claimNonce(let request):
                    let claim = AdmissionStore.Claim(
                        keyID: request.keyID, nonce: [UInt8](request.nonce), claim: [UInt8](request.claim),
                        expiresAt: WallTime(milliseconds: request.expiresAtMs))
                    claims.append(Order(wish: claim, correlation: command.correlation, replyTo: task.replyTo))
                case .takeQuota(let request):
                    let wish = AdmissionStore.QuotaWish(
                        instanceID: InstanceID(request.instanceID), keyID: request.keyID,
                        pushes: Int(clamping: request.pushes), pushesPerDay: Int(clamping: request.pushesPerDay))
                    takings.append(Order(wish: wish, correlation: command.correlation, replyTo: task.replyTo))
                case nil: answer(command.correlation, task.replyTo) { $0.failure.reason = Self.unknownCommand }
                }
            }
        }
        claim(claims, on: connection)
        take(takings, on: connection)
        bus.settle(tasks.map(\.delivery), as: .accepted)
    }

    private static let unknownCommand = "this build does not know the command"

    private func claim(_ orders: [Order<AdmissionStore.Claim>], on connection: PostgresConnection) {
        guard !orders.isEmpty else { return }
        do throws(PostgresError) {
            let fresh = try connection.run(AdmissionStore.claim(orders.map(\.wish)), within: .seconds(1))
            for (order, isFresh) in zip(orders, fresh) {
                answer(order.correlation, order.replyTo) { $0.claim.fresh = isFresh }
            }
        } catch {
            for order in orders { fail(order.correlation, to: order.replyTo, with: error) }
        }
    }

    private func take(_ orders: [Order<AdmissionStore.QuotaWish>], on connection: PostgresConnection) {
        do throws(PostgresError) {
            let all = try connection.run(orders.map { AdmissionStore.take($0.wish) }, within: .seconds(1))
            for (order, result) in zip(orders, all) {
                switch result {
                case .success(let quota?):
                    answer(order.correlation, order.replyTo) {
                        $0.quota.granted = UInt64(clamping: quota.granted)
                        $0.quota.remaining = UInt64(clamping: quota.remaining)
                        $0.quota.resetsAtMs = quota.resetsAt.milliseconds
                        $0.quota.resetsInMs = quota.resetsIn.wholeMilliseconds
                    }
                case .success(nil): answer(order.correlation, order.replyTo) { $0.failure.reason = "no row came" }
                case .failure(let error): fail(order.correlation, to: order.replyTo, with: error)
                }
            }
        } catch {
            for order in orders { fail(order.correlation, to: order.replyTo, with: error) }
        }
    }

    private func answer(_ correlation: UInt64, _ replyTo: String, _ fill: (inout Mss_Bus_V1_Reply) -> Void) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = correlation
        fill(&reply)
        bus.reply(reply, to: replyTo)
    }
}
