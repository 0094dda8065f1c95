import AMQP
import BusMessages
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Changes the control data. It is the only writer of these tables.
struct ControlHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_ControlCommand

    static let queue = CommandQueue.control
    static let groupBodies = 8

    let bus: MessageBus
    let ring: KeyRing
    let logger: Logger

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_ControlCommands.elements(of: body) }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        answerEach(tasks, \.correlation) { command, _ throws(PostgresError) in try answer(command, on: connection) }
    }

    private func answer(
        _ command: Command, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        switch command.body {
        case .putInstance(let message):
            return try store(message, on: connection, unless: "") { ControlStore.put($0, by: command.by) }
        case .createInstance(let message):
            let unless = "this instance exists"
            return try store(message, on: connection, unless: unless) { ControlStore.create($0, by: command.by) }
        case .modifyInstance(let message):
            let unless = "there is no such instance"
            return try store(message, on: connection, unless: unless) { ControlStore.modify($0, by: command.by) }
        case .putConfiguration(let message):
            let unless = "there is no such instance, or the target (user or device) differs, which cannot be changed"
            return try store(message, on: connection, unless: unless) { ControlStore.put($0, by: command.by) }
        case .createConfiguration(let message):
            let unless = "this Sync ID exists, or the instance does not"
            return try store(message, on: connection, unless: unless) { ControlStore.create($0, by: command.by) }
        case .modifyConfiguration(let message):
            let unless = "there is no such configuration, or its target (user or device) differs"
            return try store(message, on: connection, unless: unless) { ControlStore.modify($0, by: command.by) }
        case .switchConfiguration(let change):
            let query = ControlStore.setOnline(
                change.online, InstanceID(change.name.instanceID), BizType(change.name.bizType), by: command.by)
            return try make(query, on: connection, unless: "there is no such configuration")
        case .deleteConfiguration(let name):
            let query = ControlStore.delete(
                InstanceID(name.instanceID), BizType(name.bizType), by: command.by)
            return try make(query, on: connection, unless: "only a configuration that is offline can be deleted")
        case .awaitVersion(let wanted):
            let leaseRecord = try connection.run(LeaseRecord.read, within: .seconds(5))
            return .with {
                $0.control.version = wanted.version
                $0.control.gatewaysBehind = leaseRecord.gatewayIDs { $0.controlVersion < wanted.version }
                $0.control.gatewaysUnknown = !leaseRecord.isComplete
            }
        case .createKey(let request): return try create(request, by: command.by, on: connection)
        case .revokeKey(let name):
            let query = KeyStore.revoke(name.keyID, of: InstanceID(name.instanceID), by: command.by)
            return try make(query, on: connection, unless: "there is no such key")
        case .resealKeys: return try resealKeys(by: command.by, on: connection)
        case .releaseDevice(let device):
            let query = DeviceSecretStore.release(
                DeviceID(device.deviceID), of: InstanceID(device.instanceID), by: command.by)
            return try make(query, on: connection, unless: "no secret is on record for this device id")
        case .records(let request): return try records(request, on: connection)
        case .snapshot, nil:
            return .with { $0.failure.reason = "this queue does not accept the command" }
        }
    }

    /// Reads audit records (C9).
    private func records(
        _ request: Mss_Bus_V1_RecordsRequest, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let (filter, limit) = (RecordFilter(bus: request), Int(clamping: request.limit))
        let query =
            request.hasAfter
            ? RecordStore.oldest(filter, after: request.after, limit: limit)
            : RecordStore.page(filter, before: request.before == 0 ? nil : request.before, limit: limit)
        let page = try connection.run(query, within: .seconds(5))
        return .with { $0.records = page.bus }
    }

    private func store(
        _ message: Mss_Bus_V1_Instance, on connection: PostgresConnection, unless refusal: String,
        _ change: (Instance) -> ControlStore.Change
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let instance = Instance(bus: message)
        if let fault = instance.fault { return .with { $0.control.refusal = fault } }
        return try make(change(instance), on: connection, unless: refusal)
    }

    private func store(
        _ message: Mss_Bus_V1_SyncConfiguration, on connection: PostgresConnection, unless refusal: String,
        _ change: (SyncConfiguration) -> ControlStore.Change
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        guard let configuration = SyncConfiguration(bus: message) else {
            return .with { $0.control.refusal = "this build does not know the kind of channel" }
        }
        if let fault = configuration.fault { return .with { $0.control.refusal = fault } }
        return try make(change(configuration), on: connection, unless: refusal)
    }

    /// Makes a change, and announces the new control version to all processes.
    ///
    /// - Parameter refusal: the text of the reply if the database refuses the change.
    func make(
        _ change: ControlStore.Change, on connection: PostgresConnection, unless refusal: String
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        switch try connection.run(change, within: .seconds(5)) {
        case .made(let version):
            bus.announce(controlVersion: version)
            logger.info("control data changed", metadata: ["version": "\(version)"])
            return .with { $0.control.version = version }
        case .unchanged(let version):
            return .with { $0.control.version = version }
        case .refused:
            return .with { $0.control.refusal = refusal }
        case .stale:
            return .with {
                $0.control.refusal = "it was changed in the meantime; read it again"
                $0.control.stale = true
            }
        }
    }
}
