import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import Synchronization

/// One connection of a misbehaving device, with the checker of its frames.
final class MisbehavingDeviceConnection: Sendable {
    private let world: TortureWorld
    private let device: String
    private let judge: Mutex<MisbehavingDeviceChecker>

    init(_ world: TortureWorld, instance: String, device: String) {
        self.world = world
        self.device = device
        let ledger = world.ledger
        judge = Mutex(MisbehavingDeviceChecker(instance: instance, device: device) { ledger.end(of: $0) })
    }

    /// Records that the device requests a bind.
    func bound(_ number: UInt32, user: String, session: String) {
        judge.withLock { $0.bound(number, user: user, session: session) }
    }

    /// Records that no verdict on the session is valid at the time of the pong with this number.
    func expectNoCheckedData(on session: String, afterPong number: UInt64) {
        judge.withLock { $0.expectNoCheckedData(on: session, afterPong: number) }
    }

    /// Records a ping.
    ///
    /// - Returns: the number of the ping.
    func ping() -> UInt64 {
        let number = UInt64(world.next())
        judge.withLock { $0.pinged(number, at: world.history.elapsed) }
        return number
    }

    /// Checks a frame and reports violations to the history.
    ///
    /// - Returns: an acknowledgement, for about every second push.
    func received(_ packet: Mss_Device_V1_Packet) -> Mss_Device_V1_Packet? {
        for finding in judge.withLock({ $0.received(packet) }) {
            switch finding {
            case .stale(let bizType, let session):
                world.history.observe(.stale(device: device, bizType: bizType, session: session))
            case .breach(.recalled, let push):
                let text = "\(device) got \(push) after the success response to its recall"
                world.history.ask { $0.add(.recalled, world.history.elapsed, text) }
            case .breach(.expired, let push):
                let text = "\(device) got \(push) after its validity ended"
                world.history.ask { $0.add(.attempted, world.history.elapsed, text) }
            case .foreign(let text): world.history.ask { $0.add(.addressed, world.history.elapsed, text) }
            }
        }
        guard case .push(let push) = packet.body else { return nil }
        world.count("frames with data to misbehaving devices")
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
