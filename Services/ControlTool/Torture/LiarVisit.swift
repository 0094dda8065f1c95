import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import Synchronization

/// One connection of a lying device, as its judge sees it.
final class LiarVisit: Sendable {
    private let world: TortureWorld
    private let device: String
    private let judge: Mutex<LiarJudge>

    init(_ world: TortureWorld, instance: String, device: String) {
        self.world = world
        self.device = device
        let ledger = world.ledger
        judge = Mutex(LiarJudge(instance: instance, device: device) { ledger.end(of: $0) })
    }

    /// The device asks to be bound.
    func bound(_ number: UInt32, user: String, session: String) {
        judge.withLock { $0.bound(number, user: user, session: session) }
    }

    /// A verdict on the session cannot count any more when a ping of this number is answered.
    func draw(line number: UInt64, after session: String) {
        judge.withLock { $0.draw(line: number, after: session) }
    }

    /// The device sends a ping.
    ///
    /// - Returns: its number.
    func ping() -> UInt64 {
        let number = UInt64(world.next())
        judge.withLock { $0.pinged(number, at: world.history.elapsed) }
        return number
    }

    /// Judges a frame.
    ///
    /// - Returns: the acknowledgement of every second push.
    func received(_ packet: Mss_Device_V1_Packet) -> Mss_Device_V1_Packet? {
        for finding in judge.withLock({ $0.received(packet) }) {
            switch finding {
            case .stale(let bizType, let session):
                world.history.observe(.stale(device: device, bizType: bizType, session: session))
            case .breach(.recalled, let push):
                let text = "\(device) is sent \(push) after the recall of it was answered"
                world.history.ask { $0.add(.recalled, world.history.elapsed, text) }
            case .breach(.expired, let push):
                let text = "\(device) is sent \(push) after its validity has ended"
                world.history.ask { $0.add(.attempted, world.history.elapsed, text) }
            case .stranger(let text): world.history.ask { $0.add(.addressed, world.history.elapsed, text) }
            }
        }
        guard case .push(let push) = packet.body else { return nil }
        world.count("frames with data to liars")
        guard push.batches.last?.upto.isMultiple(of: 2) == true else { return nil }
        return .with {
            $0.storedAck.channels = push.batches.map { batch in
                .with {
                    $0.kind = batch.kind
                    $0.bizType = batch.bizType
                    $0.bindNumber = batch.bindNumber
                    $0.upto = batch.upto
                }
            }
        }
    }
}
