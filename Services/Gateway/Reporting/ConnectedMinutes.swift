import BusMessages
import SwiftProtobuf
import SyncModel

/// Decides when this gateway reports the number of connected devices of each instance; pure.
struct ConnectedMinutes {
    private static let minute: Int64 = 60_000

    let gatewayID: String
    /// The instances whose last report was above 0.
    private var reported: Set<InstanceID> = []
    private var lastMinute: Int64?

    init(gatewayID: String) { self.gatewayID = gatewayID }

    /// The facts to publish: one for each instance with sessions, at the first call in each minute (UTC). An instance
    /// that lost its last session gets one more fact with 0.
    mutating func facts(at time: WallTime, counts: () -> [InstanceID: Int]) -> [Mss_Bus_V1_Fact] {
        let begin = time.milliseconds - time.milliseconds % Self.minute
        guard begin != lastMinute else { return [] }
        lastMinute = begin
        let counts = counts().filter { $0.value > 0 || reported.contains($0.key) }
        reported = Set(counts.filter { $0.value > 0 }.keys)
        return counts.sorted { $0.key.text < $1.key.text }.map { instance, devices in
            .with {
                $0.atMs = begin
                $0.connected.gatewayID = gatewayID
                $0.connected.instanceID = instance.text
                $0.connected.devices = UInt32(clamping: devices)
            }
        }
    }
}
