import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// A simple client, such as a page in a browser. Acknowledged data counts as received by its app, and the gateway
/// resends unacknowledged data.
final class SimulatedSimpleDevice {
    let id: String
    private static let storeID = "simple"
    private let simulation: Simulation
    private let instanceID: String
    private let gateways: () -> [SimulatedGateway]
    private let database: SimulatedDatabase
    private let history: History
    private var link: SimulatedLink?
    private var attempt = 0
    private var isGreeted = false
    /// By Sync ID: the last oplog id that the app received.
    private var positions: [String: Int64] = [:]
    /// The probability that the client does not acknowledge a batch.
    var forgets: Double

    init(
        _ id: String, instanceID: String, history: History, database: SimulatedDatabase, in simulation: Simulation,
        gateways: @escaping () -> [SimulatedGateway]
    ) {
        self.id = id
        self.instanceID = instanceID
        self.history = history
        self.database = database
        self.simulation = simulation
        self.gateways = gateways
        forgets = simulation.pick([0.1, 0.9])
        history.bound(id, of: instanceID, to: nil)
        connectSoon()
        simulation.every(.seconds(10)) { [weak self] in
            self?.link?.toGateway(.with { $0.ping.number = 1 })
            return self != nil
        }
    }

    var isConnected: Bool { link != nil && isGreeted }

    /// Breaks the connection.
    func reset() { link?.reset() }

    private func connectSoon() {
        simulation.after(simulation.pick(.milliseconds(5), .milliseconds(800))) { [weak self] in
            guard let self, link == nil else { return }
            connect()
        }
    }

    private func connect() {
        let there = gateways().filter(\.process.isAlive)
        guard !there.isEmpty else { return connectSoon() }
        let link = SimulatedLink(simulation)
        self.link = link
        isGreeted = false
        attempt += 1
        let attempt = attempt
        link.whenAtDevice = { [weak self] packet in
            guard let self, self.attempt == attempt, self.link != nil else { return }
            receive(packet)
        }
        link.whenClosedAtDevice = { [weak self] in
            guard let self, self.attempt == attempt else { return }
            leave()
        }
        link.whenSent = { [weak self] packet in
            guard let self else { return }
            sent(packet, over: attempt)
        }
        link.whenGatewayReceives = { [weak self] packet in
            guard let self else { return }
            history.gatewayReceived(packet, from: id, over: attempt)
        }
        // A client that has no `Connected` within 10 s tries again.
        simulation.after(.seconds(10)) { [weak self] in
            guard let self, self.attempt == attempt, !isGreeted else { return }
            leave()
        }
        simulation.pick(there).accept(link)
        let connect = Mss_Device_V1_Packet.with { packet in
            packet.connect.protocolVersion = DeviceProtocolLimits.version
            packet.connect.instanceID = instanceID
            packet.connect.deviceID = id
            packet.connect.storeID = Self.storeID
            packet.connect.simple = true
            packet.connect.osName = "Android"
            packet.connect.appVersion = "1.0"
            packet.connect.syncPoints = positions.sorted { $0.key < $1.key }.map { bizType, position in
                .with {
                    $0.kind = SyncModel.ChannelKind.device.wire
                    $0.bizType = bizType
                    $0.oplogID = position
                }
            }
        }
        history.deviceSent(connect, by: id, over: attempt)
        link.toGateway(connect)
    }

    private func leave() {
        guard let link else { return }
        self.link = nil
        link.closedByDevice()
        connectSoon()
    }

    private func sent(_ packet: Mss_Device_V1_Packet, over attempt: Int) {
        history.gatewaySent(packet, to: id, over: attempt)
        guard case .push(let push)? = packet.body else { return }
        for batch in push.batches {
            let address = ChannelAddress(
                target: TargetAddress(instanceID: InstanceID(instanceID), kind: .device, target: id),
                bizType: BizType(batch.bizType))
            let recorded = database.store.repeats(of: address, id, Self.storeID)
            history.checkRepeat(of: batch, recorded: recorded, to: id)
        }
    }

    private func receive(_ packet: Mss_Device_V1_Packet) {
        switch packet.body {
        case .connected: isGreeted = true
        case .push(let push): for batch in push.batches where batch.kind == .device { receive(batch) }
        case .close: leave()
        default: break
        }
    }

    private func receive(_ batch: Mss_Device_V1_ChannelBatch) {
        let position = positions[batch.bizType] ?? 0
        if batch.after > position { return leave() }
        // The app did not receive a batch that the client does not acknowledge.
        guard !simulation.happens(forgets) else { return }
        for entry in batch.entries where entry.oplogID > position {
            history.simpleDeviceReceived(entry, of: batch.bizType, on: id, of: instanceID)
        }
        positions[batch.bizType] = max(position, batch.upto)
        link?.toGateway(
            .with {
                $0.storedAck.channels = [
                    .with {
                        $0.kind = batch.kind
                        $0.bizType = batch.bizType
                        $0.upto = batch.upto
                    }
                ]
            })
    }
}
