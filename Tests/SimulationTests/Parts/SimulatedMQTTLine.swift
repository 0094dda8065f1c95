import NIOCore

@testable import MQTT

/// The connection of an MQTT client. Packets go to the gateway and bytes come back, in order and with a delay.
final class SimulatedMQTTLine {
    /// A packet of the server, with the parts that the client uses.
    enum Packet {
        case connack(isAccepted: Bool)
        case publish(Publish)
        case other
    }

    struct Publish {
        var topic = ""
        var payload: [UInt8] = []
        var packetID: UInt16?
        var oplogID: Int64 = 0
    }

    private let simulation: Simulation
    private var received = ByteBuffer()
    private var upUntil = Duration.zero
    private var downUntil = Duration.zero
    private var isLost = false
    /// Called when a packet arrives at the gateway.
    var whenAtGateway: (MQTTClientPacket) -> Void = { _ in }
    var whenClosedAtGateway: () -> Void = {}
    /// Called when the gateway has written a packet to the socket.
    var whenSent: (Packet) -> Void = { _ in }
    var whenAtClient: (Packet) -> Void = { _ in }
    var whenClosedAtClient: () -> Void = {}

    init(_ simulation: Simulation) { self.simulation = simulation }

    func toGateway(_ packet: MQTTClientPacket) {
        after(&upUntil) { [weak self] in if self?.isLost == false { self?.whenAtGateway(packet) } }
    }

    /// Delivers bytes that the gateway has written.
    func toClient(_ bytes: ByteBuffer) {
        var bytes = bytes
        received.writeBuffer(&bytes)
        while let packet = nextPacket() {
            whenSent(packet)
            after(&downUntil) { [weak self] in if self?.isLost == false { self?.whenAtClient(packet) } }
        }
    }

    func closedByClient() {
        after(&upUntil) { [weak self] in if self?.isLost == false { self?.whenClosedAtGateway() } }
    }

    func closedByGateway() {
        after(&downUntil) { [weak self] in if self?.isLost == false { self?.whenClosedAtClient() } }
    }

    /// Breaks the connection; both ends notice it.
    func reset() {
        isLost = true
        let (atGateway, atClient) = (whenClosedAtGateway, whenClosedAtClient)
        simulation.after(.milliseconds(1)) {
            atGateway()
            atClient()
        }
    }

    private func after(_ until: inout Duration, _ body: @escaping () -> Void) {
        until = max(until, simulation.elapsed + simulation.pick(.milliseconds(1), .milliseconds(40)))
        simulation.after(until - simulation.elapsed, body)
    }

    // MARK: Packets

    private func nextPacket() -> Packet? {
        var rest = received
        guard let head = rest.readInteger(as: UInt8.self), let length = Self.readLength(&rest),
            var content = rest.readSlice(length: length)
        else { return nil }
        received = rest
        switch head >> 4 {
        case 2: return .connack(isAccepted: content.getInteger(at: content.readerIndex + 1, as: UInt8.self) == 0)
        case 3: return .publish(Self.readPublish(head, &content))
        default: return .other
        }
    }

    /// Reads a variable byte integer (MQTT 5.0, 1.5.5).
    private static func readLength(_ bytes: inout ByteBuffer) -> Int? {
        var (value, shift) = (0, 0)
        while let byte = bytes.readInteger(as: UInt8.self) {
            value |= Int(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
            shift += 7
        }
        return nil
    }

    private static func readText(_ bytes: inout ByteBuffer) -> String {
        bytes.readInteger(as: UInt16.self).flatMap { bytes.readString(length: Int($0)) } ?? ""
    }

    private static func readPublish(_ head: UInt8, _ content: inout ByteBuffer) -> Publish {
        var publish = Publish(topic: readText(&content))
        if head & 0x06 != 0 { publish.packetID = content.readInteger(as: UInt16.self) }
        if let length = readLength(&content), var properties = content.readSlice(length: length) {
            while let property = properties.readInteger(as: UInt8.self) {
                switch property {
                case 0x01: properties.moveReaderIndex(forwardBy: 1)
                case 0x02: properties.moveReaderIndex(forwardBy: 4)
                default:
                    let (name, value) = (readText(&properties), readText(&properties))
                    if name == "oplogId" { publish.oplogID = Int64(value) ?? 0 }
                }
            }
        }
        publish.payload = Array(content.readableBytesView)
        return publish
    }
}
