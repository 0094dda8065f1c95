import SyncModel

@testable import MQTT

/// An MQTT client of one user, with a small window, that subscribes late and acknowledges late.
final class SimulatedMQTTDevice {
    private static let recallSuffix = "/recall"
    let id: String
    let userID: String
    private let simulation: Simulation
    private let instanceID: String
    private let history: History
    private let gateways: () -> [SimulatedGateway]
    private(set) var sessionID: String
    private var line: SimulatedMQTTLine?
    private var attempt = 0
    private var isSubscribed = false
    private var taken: Set<String> = []
    /// Whether the client subscribes and acknowledges without delay.
    var isPrompt = false

    init(
        _ id: String, instanceID: String, userID: String, sessionID: String, history: History,
        in simulation: Simulation, gateways: @escaping () -> [SimulatedGateway]
    ) {
        self.id = id
        self.instanceID = instanceID
        self.userID = userID
        self.sessionID = sessionID
        self.history = history
        self.simulation = simulation
        self.gateways = gateways
        history.bound(id, of: instanceID, toUser: userID)
        connectSoon()
        simulation.every(.seconds(10)) { [weak self] in
            self?.line?.toGateway(.pingreq)
            return self != nil
        }
    }

    var isConnected: Bool { line != nil && isSubscribed }

    /// Reconnects with a new session of the user.
    func signIn(_ sessionID: String) {
        self.sessionID = sessionID
        leave()
    }

    /// Breaks the connection.
    func reset() { line?.reset() }

    private func pause(upTo longest: Duration) -> Duration { isPrompt ? .zero : simulation.pick(.zero, longest) }

    private func connectSoon() {
        simulation.after(simulation.pick(.milliseconds(5), .milliseconds(800))) { [weak self] in
            guard let self, line == nil else { return }
            connect()
        }
    }

    private func connect() {
        let there = gateways().filter(\.process.isAlive)
        guard !there.isEmpty else { return connectSoon() }
        let line = SimulatedMQTTLine(simulation)
        self.line = line
        isSubscribed = false
        attempt += 1
        let (attempt, sessionID) = (attempt, sessionID)
        line.whenAtClient = { [weak self] packet in
            guard let self, self.attempt == attempt, self.line != nil else { return }
            receive(packet)
        }
        line.whenClosedAtClient = { [weak self] in
            guard let self, self.attempt == attempt else { return }
            leave()
        }
        line.whenSent = { [weak self] packet in
            guard let self, case .publish(let publish) = packet else { return }
            history.published(
                publish.payload, bizType: publish.topic, oplogID: publish.oplogID, to: id, of: userID,
                on: sessionID)
        }
        // A client that is not accepted and subscribed within 10 s tries again.
        simulation.after(.seconds(10)) { [weak self] in
            guard let self, self.attempt == attempt, !isSubscribed else { return }
            leave()
        }
        history.mqttClientConnects(id)
        simulation.pick(there).accept(line)
        line.toGateway(
            .connect(
                MQTTConnect(
                    version: .v5, isCleanStart: true, keepAlive: 30, clientID: id, userName: "\(instanceID)/\(userID)",
                    password: Array(sessionID.utf8), receiveMaximum: UInt16(simulation.pick(1...3)))))
    }

    private func leave() {
        guard let line else { return }
        self.line = nil
        line.closedByClient()
        connectSoon()
    }

    private func receive(_ packet: SimulatedMQTTLine.Packet) {
        switch packet {
        case .connack(isAccepted: false): leave()
        case .connack(isAccepted: true):
            let attempt = attempt
            simulation.after(pause(upTo: .seconds(4))) { [weak self] in
                guard let self, self.attempt == attempt, let line else { return }
                isSubscribed = true
                line.toGateway(.subscribe(packetID: 1, [MQTTSubscription(filter: "#", qualityOfService: 1)]))
            }
        case .publish(let publish): receive(publish)
        case .other: break
        }
    }

    private func receive(_ publish: SimulatedMQTTLine.Publish) {
        simulation.trace("receives", publish.oplogID, about: "\(id) \(publish.topic)")
        let payload = String(decoding: publish.payload, as: UTF8.self)
        if publish.topic.hasSuffix(Self.recallSuffix) {
            guard taken.insert("\(publish.topic) \(payload)").inserted else { return acknowledge(publish) }
            history.mqttClientReceivedTombstone(
                publish.oplogID, recalls: Int64(payload) ?? 0,
                bizType: String(publish.topic.dropLast(Self.recallSuffix.count)), on: id, of: instanceID, user: userID)
        } else if let name = payload.split(separator: "|").last.map(String.init) {
            history.awaitsRecord(of: name, oplogID: publish.oplogID, on: id)
            // A failover can lose a push, which then gets another id.
            if taken.insert("\(publish.oplogID) \(name)").inserted {
                history.mqttClientReceived(
                    payload, as: name, oplogID: publish.oplogID, bizType: publish.topic, on: id, of: instanceID,
                    user: userID)
            }
        }
        acknowledge(publish)
    }

    private func acknowledge(_ publish: SimulatedMQTTLine.Publish) {
        guard let packetID = publish.packetID else { return }
        let attempt = attempt
        simulation.after(pause(upTo: .seconds(1))) { [weak self] in
            guard let self, self.attempt == attempt, let line else { return }
            simulation.trace("acknowledges", publish.oplogID, about: "\(id) \(publish.topic)")
            line.toGateway(.puback(packetID: packetID))
        }
    }
}
