import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Renews leases, changes device sessions, and returns the state of the channels of a session.
struct SessionHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_SessionCommand

    static let queue = CommandQueue.session
    static let groupBodies = 16

    let bus: MessageBus
    var stores = StoreLayout.single

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_SessionCommands.elements(of: body) }

    /// A command that this build knows.
    private struct Step {
        let command: Command
        let replyTo: String
        let storeCommand: SessionStoreCommand
    }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        perform(tasks, in: DeliveryDatabase(connection, stores))
    }

    func perform(_ tasks: [StoreTask<Command>], in store: some DeliveryStore) {
        var steps: [Step] = []
        for task in tasks {
            for command in task.commands {
                if let storeCommand = SessionStoreCommand(command) {
                    steps.append(Step(command: command, replyTo: task.replyTo, storeCommand: storeCommand))
                } else {
                    var reply = Mss_Bus_V1_Reply()
                    reply.correlation = command.correlation
                    reply.failure.reason = "this build does not know the command"
                    bus.reply(reply, to: task.replyTo)
                }
            }
        }
        let outcome = Result { () throws(PostgresError) in try store.perform(steps.map(\.storeCommand)) }
        bus.batched {
            for (index, step) in steps.enumerated() {
                do throws(PostgresError) {
                    let answer = try outcome.get()[index].get()
                    if case .opened(let opened) = answer { supersede(opened.registered, by: step.command.open) }
                    if case .storedParameters(let gateways) = answer {
                        notify(gateways, of: step.command.keepParameters)
                    }
                    var reply = Mss_Bus_V1_Reply(answer)
                    reply.correlation = step.command.correlation
                    bus.reply(reply, to: step.replyTo)
                } catch {
                    fail(step.command.correlation, to: step.replyTo, with: error)
                }
            }
            bus.acknowledge(tasks)
        }
    }

    /// Notifies the gateways that the user's parameters changed; the user's sessions then request their filters again.
    private func notify(_ gateways: [String], of stored: Mss_Bus_V1_KeepParameters) {
        for gatewayID in gateways {
            let notice = Mss_Bus_V1_GatewayNotice.with {
                $0.parametersKept.instanceID = stored.instanceID
                $0.parametersKept.userID = stored.userID
            }
            bus.notify(gateway: gatewayID, notice)
        }
    }

    /// Notifies the gateway of the device's older connection, which then closes it.
    private func supersede(_ registered: DeviceSessionStore.Registered, by session: Mss_Bus_V1_OpenSession) {
        guard let gatewayID = registered.supersededGatewayID else { return }
        let notice = Mss_Bus_V1_GatewayNotice.with {
            $0.superseded.instanceID = session.instanceID
            $0.superseded.deviceID = session.deviceID
            $0.superseded.connectionEpoch = registered.connectionEpoch
        }
        bus.notify(gateway: gatewayID, notice)
    }
}

extension SessionStoreCommand {
    /// The value is nil if this build does not know the command.
    init?(_ command: Mss_Bus_V1_SessionCommand) {
        switch command.body {
        case .renewLease(let renewal):
            self = .renewLease(
                gatewayID: renewal.gatewayID, epoch: renewal.epoch, controlVersion: renewal.controlVersion,
                sessions: Int(clamping: renewal.sessions))
        case .open(let session):
            self = .open(DeviceSessionStore.Registration(session), sessionDigest: [UInt8](session.sessionDigest))
        case .close(let session):
            self = .close(
                instanceID: InstanceID(session.instanceID), deviceID: DeviceID(session.deviceID),
                connectionEpoch: session.connectionEpoch)
        case .update(let session):
            self = .update(
                instanceID: InstanceID(session.instanceID), deviceID: DeviceID(session.deviceID),
                connectionEpoch: session.connectionEpoch, number: session.number, isForeground: session.foreground,
                verdictMilliseconds: session.verdictValidMs)
        case .sweep(let sweep):
            self = .sweep(gatewayID: sweep.gatewayID, since: sweep.since)
        case .finishReread(let reread):
            self = .finishReread(reread.rereadID)
        case .keepParameters(let kept):
            self = .storeParameters(
                kept.parameters.compactMap(DeviceParameter.init(bus:)), of: UserID(kept.userID),
                in: InstanceID(kept.instanceID))
        case nil:
            return nil
        }
    }
}

extension DeviceSessionStore.Registration {
    /// Reads the bus message.
    init(_ session: Mss_Bus_V1_OpenSession) {
        self.init(
            gatewayID: session.gatewayID, gatewayEpoch: session.gatewayEpoch,
            instanceID: InstanceID(session.instanceID), deviceID: DeviceID(session.deviceID),
            storeID: StoreID(session.storeID), userID: session.userID.isEmpty ? nil : UserID(session.userID),
            traits: DeviceTraits(
                operatingSystem: SyncModel.OperatingSystem(bus: session.operatingSystem),
                appVersion: session.appVersion, slot: DeviceSlot(hashing: session.deviceID)),
            isForeground: session.foreground,
            connectionNumber: session.connectionNumber, registrationNumber: session.registrationNumber,
            deviceConnectionNumber: session.deviceConnectionNumber,
            connectionEpoch: session.connectionEpoch,
            takesOwnership: session.takesOwnership, ownershipEpoch: session.ownershipEpoch,
            verdictMilliseconds: session.verdictValidMs,
            suspended: session.suspended.map { BizType($0) },
            secretDigest: session.bindsDevice ? [UInt8](session.deviceSecretDigest) : nil,
            pushToken: session.hasPushToken ? PushToken(bus: session.pushToken) : nil)
        opensBind = session.opensBind
        filtered = session.filtered.map { BizType($0) }
        parameters = session.parameters.compactMap(DeviceParameter.init(bus:))
    }
}

extension Mss_Bus_V1_Reply {
    /// The reply as a bus message, without its correlation.
    fileprivate init(_ answer: SessionStoreAnswer) {
        self.init()
        switch answer {
        case .lease(let renewed):
            databaseTimeMs = renewed.databaseTime?.milliseconds ?? 0
            lease.epoch = renewed.epoch
            lease.controlVersion = renewed.controlVersion
            lease.gateways = UInt32(clamping: renewed.gateways)
            lease.sessions = UInt64(clamping: renewed.sessions)
            lease.snapshot = renewed.snapshot
        case .opened(let opened):
            databaseTimeMs = opened.registered.databaseTime?.milliseconds ?? 0
            session.connectionEpoch = opened.registered.connectionEpoch
            session.leaseLost = !opened.registered.hasLease
            session.owner = opened.registered.ownsUser
            session.ownershipEpoch = opened.registered.ownershipEpoch
            session.becameOwner = opened.registered.becameOwner
            if let revocation = opened.revocation {
                session.revokedAgoMs = revocation.agoMilliseconds
                session.revocationNumber = revocation.number
            }
            session.wrongDeviceSecret = opened.registered.isWrongSecret
            session.channels = opened.channels.map(\.bus)
            session.rereads = opened.rereads.map { reread in
                .with {
                    $0.rereadID = reread.id
                    $0.channelID = reread.channelID
                    $0.oplog = reread.oplog.bus
                    $0.newlyMatching = reread.isNewlyMatching
                }
            }
            session.userParameters = opened.userParameters.map(\.bus)
            session.refusedFilters = opened.refusedFilters.map(\.text)
        case .done, .storedParameters:
            session = .init()
        case .swept(let swept):
            sweep.channels = swept.channels.map(\.bus)
            sweep.upto = swept.upto
        }
    }
}

extension DeviceSessionStore.ChannelState {
    /// The state as a bus message.
    var bus: Mss_Bus_V1_ChannelState {
        .with {
            $0.channelID = channelID
            $0.target = address.target.bus
            $0.bizType = address.bizType.text
            $0.head = head.value
            $0.syncPoint = syncPoint.value
            $0.acknowledged = acknowledged.value
            $0.resentID = resentID.value
            $0.repeats = UInt32(repeats)
            $0.filters = filters?.bus ?? []
        }
    }
}

/// Executes lease commands like `SessionHandler`, but on a queue and a store worker of their own, so that a lease never
/// waits for other commands.
struct LeaseHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_SessionCommand

    static let queue = CommandQueue.lease
    /// A writer that hangs keeps the renewals that were delivered to it. So does a hung node of the broker, for each
    /// writer that was connected to it. So a writer gets one at a time.
    static let prefetch: UInt16 = 1
    static let groupBodies = 1

    let sessions: SessionHandler

    var bus: MessageBus { sessions.bus }

    static func commands(of body: [UInt8]) -> [Command]? { SessionHandler.commands(of: body) }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        sessions.perform(tasks, on: connection)
    }

    func perform(_ tasks: [StoreTask<Command>], in store: some DeliveryStore) { sessions.perform(tasks, in: store) }
}
