import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Keeps leases and device sessions, and tells a session where its channels stand.
struct SessionWork: LaneWork {
    typealias Command = Mss_Bus_V1_SessionCommand

    static let queue = CommandQueue.session
    static let groupBodies = 16

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_SessionCommands.elements(of: body) }

    /// A command with the statements that do it, in order; each is its own transaction.
    private struct Step {
        let command: Command
        let replyTo: String
        let statements: [PostgresStatement]
        let answer: @Sendable ([PostgresRows]) -> Mss_Bus_V1_Reply
    }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        let steps = tasks.flatMap { task in task.commands.map { step(for: $0, replyTo: task.replyTo) } }
        let outcome: Result<[Result<PostgresRows, PostgresError>], PostgresError>
        do throws(PostgresError) {
            outcome = .success(try connection.run(steps.flatMap(\.statements), within: .seconds(10)))
        } catch {
            outcome = .failure(error)
        }
        bus.together {
            var next = 0
            for step in steps {
                defer { next += step.statements.count }
                do throws(PostgresError) {
                    var rows: [PostgresRows] = []
                    for result in try outcome.get()[next..<next + step.statements.count] {
                        rows.append(try result.get())
                    }
                    var reply = step.answer(rows)
                    reply.correlation = step.command.correlation
                    bus.reply(reply, to: step.replyTo)
                } catch {
                    fail(step.command.correlation, to: step.replyTo, with: error)
                }
            }
            bus.settle(tasks.map(\.delivery), as: .accepted)
        }
    }

    private func step(for command: Command, replyTo: String) -> Step {
        func make<Output>(
            _ query: Query<Output>, _ fill: @escaping @Sendable (Output, inout Mss_Bus_V1_Reply) -> Void
        ) -> Step {
            Step(command: command, replyTo: replyTo, statements: [query.statement]) { rows in
                .with { fill(query.decode(rows[0]), &$0) }
            }
        }
        switch command.body {
        case .renewLease(let renewal):
            let query = DeviceSessionStore.renewLease(
                gatewayID: renewal.gatewayID, epoch: renewal.epoch, controlVersion: renewal.controlVersion)
            return make(query) { lease, reply in
                reply.lease.epoch = lease.epoch
                reply.lease.controlVersion = lease.controlVersion
            }
        case .open(let session):
            return open(session, command: command, replyTo: replyTo)
        case .close(let session):
            let query = DeviceSessionStore.close(
                instanceID: InstanceID(session.instanceID), deviceID: DeviceID(session.deviceID),
                connectionEpoch: session.connectionEpoch)
            return make(query) { $1.session = .init() }
        case .update(let session):
            let query = DeviceSessionStore.update(
                instanceID: InstanceID(session.instanceID), deviceID: DeviceID(session.deviceID),
                connectionEpoch: session.connectionEpoch, isForeground: session.foreground,
                verdictMilliseconds: session.verdictValidMs)
            return make(query) { $1.session = .init() }
        case .sweep(let sweep):
            let query = DeviceSessionStore.movedChannels(
                gatewayID: sweep.gatewayID, window: .seconds(Int64(sweep.windowSeconds)))
            return make(query) { channels, reply in reply.sweep.channels = channels.map(\.bus) }
        case .finishReread(let reread):
            return make(RereadStore.finish(reread.rereadID)) { $1.session = .init() }
        case nil:
            return Step(command: command, replyTo: replyTo, statements: []) { _ in
                .with { $0.failure.reason = "this build does not know the command" }
            }
        }
    }

    private func open(_ session: Mss_Bus_V1_OpenSession, command: Command, replyTo: String) -> Step {
        let registration = DeviceSessionStore.Registration(
            gatewayID: session.gatewayID, gatewayEpoch: session.gatewayEpoch,
            instanceID: InstanceID(session.instanceID), deviceID: DeviceID(session.deviceID),
            storeID: StoreID(session.storeID), userID: session.userID.isEmpty ? nil : UserID(session.userID),
            traits: DeviceTraits(
                operatingSystem: SyncModel.OperatingSystem(bus: session.operatingSystem),
                appVersion: session.appVersion, slot: DeviceSlot(hashing: session.deviceID)),
            isForeground: session.foreground,
            connectionNumber: session.connectionNumber, registrationNumber: session.registrationNumber,
            connectionEpoch: session.connectionEpoch,
            takesOwnership: session.takesOwnership, verdictMilliseconds: session.verdictValidMs,
            suspended: session.suspended.map { BizType($0) },
            secretDigest: session.bindsDevice ? [UInt8](session.deviceSecretDigest) : nil)
        let register = DeviceSessionStore.register(registration)
        let channels = DeviceSessionStore.channels(of: registration)
        let rereads = RereadStore.waiting(
            instanceID: registration.instanceID, deviceID: registration.deviceID, userID: registration.userID)
        let revocation = RevocationStore.latest(
            of: [UInt8](session.sessionDigest), registration.instanceID, registration.userID)
        let bus = bus
        let statements = [register.statement, channels.statement, rereads.statement, revocation.statement]
        return Step(command: command, replyTo: replyTo, statements: statements) { rows in
            let registered = register.decode(rows[0])
            if let gatewayID = registered.supersededGatewayID {
                let notice = Mss_Bus_V1_GatewayNotice.with {
                    $0.superseded.instanceID = session.instanceID
                    $0.superseded.deviceID = session.deviceID
                    $0.superseded.connectionEpoch = registered.connectionEpoch
                }
                bus.notify(gateway: gatewayID, notice)
            }
            return .with {
                $0.session.connectionEpoch = registered.connectionEpoch
                $0.session.leaseLost = !registered.hasLease
                $0.session.owner = registered.ownsUser
                if let found = revocation.decode(rows[3]) {
                    $0.session.revokedAgoMs = found.agoMilliseconds
                    $0.session.revocationNumber = found.number
                }
                $0.session.wrongDeviceSecret = registered.isWrongSecret
                $0.session.channels = channels.decode(rows[1]).map(\.bus)
                $0.session.rereads = rereads.decode(rows[2]).map { reread in
                    .with {
                        $0.rereadID = reread.id
                        $0.channelID = reread.channelID
                        $0.oplog = reread.oplog.bus
                    }
                }
            }
        }
    }
}

extension DeviceSessionStore.ChannelState {
    /// The state as the schema has it.
    var bus: Mss_Bus_V1_ChannelState {
        .with {
            $0.channelID = channelID
            $0.target = address.target.bus
            $0.bizType = address.bizType.text
            $0.head = head.value
            $0.syncPoint = syncPoint.value
            $0.resentID = resentID.value
            $0.repeats = UInt32(repeats)
        }
    }
}
