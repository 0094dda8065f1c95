import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Keeps the counts that all processes share: used nonces of signed requests, and the pushes of a day (H9).
struct AdmissionHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_AdmissionCommand

    static let queue = CommandQueue.admission
    static let groupBodies = 64

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AdmissionCommands.elements(of: body) }

    /// The content of a command, and the address of its reply.
    private struct Pending<Content> {
        let content: Content
        let correlation: UInt64
        let replyTo: String
    }

    /// Nonces come first: a signed request waits for its nonce, while most quota is reserved in advance.
    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        var claims: [Pending<AdmissionStore.Claim>] = []
        var reservations: [Pending<AdmissionStore.QuotaRequest>] = []
        for task in tasks {
            for command in task.commands {
                switch command.body {
                case .claimNonce(let request):
                    let claim = AdmissionStore.Claim(
                        keyID: request.keyID, nonce: [UInt8](request.nonce), claim: [UInt8](request.claim),
                        expiresAt: WallTime(milliseconds: request.expiresAtMs))
                    claims.append(Pending(content: claim, correlation: command.correlation, replyTo: task.replyTo))
                case .takeQuota(let request):
                    let reservation = AdmissionStore.QuotaRequest(
                        instanceID: InstanceID(request.instanceID), keyID: request.keyID,
                        pushes: Int(clamping: request.pushes), pushesPerDay: Int(clamping: request.pushesPerDay))
                    reservations.append(
                        Pending(content: reservation, correlation: command.correlation, replyTo: task.replyTo))
                case nil: answer(command.correlation, task.replyTo) { $0.failure.reason = Self.unknownCommand }
                }
            }
        }
        claim(claims, on: connection)
        reserve(reservations, on: connection)
        bus.acknowledge(tasks)
    }

    private static let unknownCommand = "this build does not know the command"

    private func claim(_ requests: [Pending<AdmissionStore.Claim>], on connection: PostgresConnection) {
        guard !requests.isEmpty else { return }
        do throws(PostgresError) {
            let fresh = try connection.run(AdmissionStore.claim(requests.map(\.content)), within: .seconds(1))
            for (request, isFresh) in zip(requests, fresh) {
                answer(request.correlation, request.replyTo) { $0.claim.fresh = isFresh }
            }
        } catch {
            for request in requests { fail(request.correlation, to: request.replyTo, with: error) }
        }
    }

    private func reserve(_ requests: [Pending<AdmissionStore.QuotaRequest>], on connection: PostgresConnection) {
        do throws(PostgresError) {
            let all = try connection.run(requests.map { AdmissionStore.reserve($0.content) }, within: .seconds(1))
            for (request, result) in zip(requests, all) {
                switch result {
                case .success(let quota?):
                    answer(request.correlation, request.replyTo) {
                        $0.quota.granted = UInt64(clamping: quota.granted)
                        $0.quota.remaining = UInt64(clamping: quota.remaining)
                        $0.quota.resetsAtMs = quota.resetsAt.milliseconds
                        $0.quota.resetsInMs = quota.resetsIn.wholeMilliseconds
                    }
                case .success(nil):
                    answer(request.correlation, request.replyTo) {
                        $0.failure.reason = "the quota query returned no row"
                    }
                case .failure(let error): fail(request.correlation, to: request.replyTo, with: error)
                }
            }
        } catch {
            for request in requests { fail(request.correlation, to: request.replyTo, with: error) }
        }
    }

    private func answer(_ correlation: UInt64, _ replyTo: String, _ fill: (inout Mss_Bus_V1_Reply) -> Void) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = correlation
        fill(&reply)
        bus.reply(reply, to: replyTo)
    }
}
