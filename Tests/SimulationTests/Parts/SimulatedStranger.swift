import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel

/// An attacker's device: it binds other users with invented sessions, reports positions that it never had, and
/// acknowledges and confirms data that it was not sent.
final class SimulatedStranger {
    private static let farthest: Int64 = 1 << 53 - 1
    private let id: String
    private let simulation: Simulation
    private let instance: Instance
    private let bizTypes: [String]
    private let victims: [String]
    private let history: History
    private let gateways: () -> [SimulatedGateway]
    private var link: SimulatedLink?
    private var attempt = 0
    private var bindNumber: UInt32 = 0
    private var lastSession = 0
    private var number: UInt64 = 0
    /// Whether the device no longer reconnects.
    private var isGone = false

    init(
        _ id: String, of instance: Instance, bizTypes: [String], victims: [String], history: History,
        in simulation: Simulation, gateways: @escaping () -> [SimulatedGateway]
    ) {
        self.id = id
        self.instance = instance
        self.bizTypes = bizTypes
        self.victims = victims
        self.history = history
        self.simulation = simulation
        self.gateways = gateways
        connectSoon()
    }

    func stop() {
        isGone = true
        leave()
    }

    private func connectSoon() {
        simulation.after(simulation.pick(.milliseconds(100), .seconds(2))) { [weak self] in
            guard let self, link == nil, !isGone else { return }
            connect()
        }
    }

    private func connect() {
        let there = gateways().filter(\.process.isAlive)
        guard !there.isEmpty else { return connectSoon() }
        let link = SimulatedLink(simulation)
        self.link = link
        attempt += 1
        bindNumber = 0
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
            history.gatewaySent(packet, to: id, over: attempt)
        }
        link.whenGatewayReceives = { [weak self] packet in
            guard let self else { return }
            history.gatewayReceived(packet, from: id, over: attempt)
        }
        simulation.after(simulation.pick(.milliseconds(200), .seconds(4))) { [weak self] in
            guard let self, self.attempt == attempt else { return }
            leave()
        }
        simulation.pick(there).accept(link)
        send(
            .with {
                $0.connect.protocolVersion = DeviceProtocolLimits.version
                $0.connect.instanceID = instance.id.text
                $0.connect.deviceID = id
                $0.connect.storeID = "store-\(id)"
                $0.connect.osName = "Android"
                $0.connect.appVersion = "1.0"
                $0.connect.bind = bind()
            })
    }

    private func send(_ packet: Mss_Device_V1_Packet) {
        history.deviceSent(packet, by: id, over: attempt)
        link?.toGateway(packet)
    }

    private func leave() {
        guard let link else { return }
        self.link = nil
        link.closedByDevice()
        connectSoon()
    }

    // MARK: Lies

    private func bind() -> Mss_Device_V1_Bind {
        bindNumber += 1
        lastSession += 1
        let (victim, sessionID) = (simulation.pick(victims), "made-up-\(lastSession)")
        history.forged(sessionID)
        return .with {
            $0.bindNumber = bindNumber
            $0.userID = victim
            $0.sessionID = sessionID
            $0.requestedByApp = simulation.happens(0.5)
            $0.syncPoints = bizTypes.map { bizType in
                .with {
                    $0.kind = SyncModel.ChannelKind.user.wire
                    $0.bizType = bizType
                    $0.oplogID = position()
                }
            }
        }
    }

    private func position() -> Int64 { simulation.happens(0.5) ? Self.farthest : Int64(simulation.pick(1...60)) }

    private func receive(_ packet: Mss_Device_V1_Packet) {
        switch packet.body {
        case .connected, .bindResult, .push, .caughtUp, .sessionState: lieSoon()
        case .close: leave()
        default: break
        }
    }

    private func lieSoon() {
        let attempt = attempt
        simulation.after(simulation.pick(.zero, .milliseconds(300))) { [weak self] in
            guard let self, self.attempt == attempt, link != nil else { return }
            lie()
        }
    }

    private func lie() {
        switch simulation.pick(0...3) {
        case 0: send(.with { $0.bind = bind() })
        case 1:
            number += 1
            send(
                .with {
                    $0.confirmReport.reportID = number
                    $0.confirmReport.channels = bizTypes.map { bizType in
                        .with {
                            $0.kind = SyncModel.ChannelKind.user.wire
                            $0.bizType = bizType
                            $0.bindNumber = bindNumber
                            $0.oplogIds = (1...9).map { _ in Int64(simulation.pick(1...60)) }
                        }
                    }
                })
        default:
            let acknowledged = bizTypes.map { bizType in
                Mss_Device_V1_StoredUpto.with {
                    $0.kind = SyncModel.ChannelKind.user.wire
                    $0.bizType = bizType
                    $0.bindNumber = bindNumber
                    $0.upto = position()
                }
            }
            send(.with { $0.storedAck.channels = acknowledged })
        }
    }
}
