import BusMessages
import SwiftProtobuf
import SyncModel

/// When this gateway tells how many devices of each instance it has, and of which instances; pure.
struct ConnectedMinutes {
    private static let minute: Int64 = 60_000

    let gatewayID: String
    /// Of which instances the last word was that some are there.
    private var told: Set<InstanceID> = []
    private var lastMinute: Int64?

    init(gatewayID: String) { self.gatewayID = gatewayID }

    /// One fact per instance at the first call in each minute (UTC): of those that have sessions, and a last one of 0 of
    /// those that have none any more.
    mutating func facts(at time: WallTime, counts: () -> [InstanceID: Int]) -> [Mss_Bus_V1_Fact] {
        let begin = time.milliseconds - time.milliseconds % Self.minute
        guard begin != lastMinute else { return [] }
        lastMinute = begin
        let counts = counts().filter { $0.value > 0 || told.contains($0.key) }
        told = Set(counts.filter { $0.value > 0 }.keys)
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
