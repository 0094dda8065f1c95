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

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        let all = tasks.flatMap { task in task.commands.map { (command: $0, replyTo: task.replyTo) } }
        var claims: [(claim: AdmissionStore.Claim, correlation: UInt64, replyTo: String)] = []
        for (command, replyTo) in all {
            switch command.body {
            case .claimNonce(let request):
                let claim = AdmissionStore.Claim(
                    keyID: request.keyID, nonce: [UInt8](request.nonce), claim: [UInt8](request.claim),
                    expiresAt: WallTime(milliseconds: request.expiresAtMs))
                claims.append((claim, command.correlation, replyTo))
            case .takeQuota(let request): take(request, command.correlation, replyTo, on: connection)
            case nil:
                let reply = Mss_Bus_V1_Reply.with {
                    $0.correlation = command.correlation
                    $0.failure.reason = "this build does not know the command"
                }
                bus.reply(reply, to: replyTo)
            }
        }
        do throws(PostgresError) {
            let fresh =
                claims.isEmpty
                ? [] : try connection.run(AdmissionStore.claim(claims.map(\.claim)), within: .seconds(1))
            for (claim, isFresh) in zip(claims, fresh) {
                let reply = Mss_Bus_V1_Reply.with {
                    $0.correlation = claim.correlation
                    $0.claim.fresh = isFresh
                }
                bus.reply(reply, to: claim.replyTo)
            }
        } catch {
            for claim in claims { fail(claim.correlation, to: claim.replyTo, with: error) }
        }
        bus.settle(tasks.map(\.delivery), as: .accepted)
    }

    private func take(
        _ request: Mss_Bus_V1_TakeQuota, _ correlation: UInt64, _ replyTo: String, on connection: PostgresConnection
    ) {
        let wish = AdmissionStore.QuotaWish(
            instanceID: InstanceID(request.instanceID), keyID: request.keyID, pushes: Int(clamping: request.pushes),
            pushesPerDay: Int(clamping: request.pushesPerDay))
        do throws(PostgresError) {
            guard let quota = try connection.run(AdmissionStore.take(wish), within: .seconds(1)) else { return }
            let reply = Mss_Bus_V1_Reply.with {
                $0.correlation = correlation
                $0.quota.granted = UInt64(clamping: quota.granted)
                $0.quota.remaining = UInt64(clamping: quota.remaining)
                $0.quota.resetsAtMs = quota.resetsAt.milliseconds
            }
            bus.reply(reply, to: replyTo)
        } catch {
            fail(correlation, to: replyTo, with: error)
        }
    }
}
