import DeviceProtocol
import SwiftProtobuf
import Synchronization
import Testing

/// An implementation with one fault, the cases that run on it, and the case that must find the fault.
struct BrokenImplementation: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let cases: [String]
    let finder: String
    let fault: @Sendable () -> FrameProxy.Fault

    static let gateways = [
        BrokenImplementation(
            testDescription: "closes an older connection without saying so",
            cases: ["connection/"], finder: "connection/newer-one-of-the-device"
        ) {
            FrameProxy.Fault(toDevice: { $0.close.code == 5002 ? [] : [$0] })
        },
        BrokenImplementation(
            testDescription: "says CaughtUp at once",
            cases: ["delivery/"], finder: "delivery/caught-up-after-the-backlog"
        ) {
            FrameProxy.Fault(toDevice: { packet in
                switch packet.body {
                case .connected: [packet, .with { $0.caughtUp.bindNumber = 1 }]
                case .caughtUp: []
                default: [packet]
                }
            })
        },
        BrokenImplementation(
            testDescription: "forgets acknowledgements",
            cases: ["ack/acknowledged-does-not", "ack/unacknowledged", "ack/empty", "ack/unknown"],
            finder: "ack/acknowledged-does-not"
        ) {
            FrameProxy.Fault(toGateway: { if case .storedAck = $0.body { [] } else { [$0] } })
        },
        BrokenImplementation(
            testDescription: "keeps ping numbers in a double", cases: ["timers/ping-numbers", "bind/"],
            finder: "timers/ping-numbers"
        ) {
            FrameProxy.Fault(toDevice: { [rounded($0)] })
        },
        BrokenImplementation(
            testDescription: "answers a report only once", cases: ["confirm/"], finder: "confirm/repeated"
        ) {
            let answered = Mutex<Set<UInt64>>([])
            return FrameProxy.Fault(toDevice: { packet in
                guard case .confirmRecorded(let recorded)? = packet.body else { return [packet] }
                return answered.withLock { $0.insert(recorded.reportID).inserted } ? [packet] : []
            })
        },
    ]

    static let clients = [
        BrokenImplementation(
            testDescription: "acknowledges nothing", cases: ["batch/in-order", "confirm/reported"],
            finder: "batch/in-order"
        ) {
            FrameProxy.Fault(toGateway: { if case .storedAck = $0.body { [] } else { [$0] } })
        },
        BrokenImplementation(
            testDescription: "acknowledges more than it got", cases: ["batch/overlapping", "confirm/reported"],
            finder: "batch/overlapping"
        ) {
            FrameProxy.Fault(toGateway: { packet in
                guard case .storedAck(var ack)? = packet.body else { return [packet] }
                for index in ack.channels.indices { ack.channels[index].upto += 1 }
                return [.with { $0.storedAck = ack }]
            })
        },
        BrokenImplementation(
            testDescription: "comes back without its positions",
            cases: ["batch/position-survives", "batch/without-entries", "batch/passed-over"],
            finder: "batch/position-survives-the-connection"
        ) {
            FrameProxy.Fault(toGateway: { packet in
                guard case .connect(var connect)? = packet.body else { return [packet] }
                connect.bind.syncPoints = []
                return [.with { $0.connect = connect }]
            })
        },
        BrokenImplementation(
            testDescription: "keeps ping numbers in a double", cases: ["framing/ping-numbers", "batch/in-order"],
            finder: "framing/ping-numbers"
        ) {
            FrameProxy.Fault(toGateway: { [rounded($0)] })
        },
        BrokenImplementation(
            testDescription: "does not listen to Close", cases: ["close/5001-stays-away", "close/1001"],
            finder: "close/5001-stays-away"
        ) {
            FrameProxy.Fault(toDevice: { if case .close = $0.body { [] } else { [$0] } })
        },
    ]

    private static func rounded(_ packet: Mss_Device_V1_Packet) -> Mss_Device_V1_Packet {
        guard case .pong(let pong)? = packet.body else { return packet }
        return .with { $0.pong.number = pong.number & (1 << 53 - 1) }
    }
}
