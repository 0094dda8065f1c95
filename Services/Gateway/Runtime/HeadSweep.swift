import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization

/// The gateway's regular request for channels with new oplogs, which finds the data of lost notices.
final class HeadSweep: Sendable {
    /// The snapshot of the last sweep, and the epoch of the lease that it was made under.
    private let last = Mutex<(epoch: Int64, upto: String)>((0, ""))
    private let gatewayID: String
    private let bus: MessageBus
    private let logger: Logger

    init(gatewayID: String, bus: MessageBus, logger: Logger) {
        self.gatewayID = gatewayID
        self.bus = bus
        self.logger = logger
    }

    /// Asks the store for channels with new oplogs since the last sweep. The first sweep under a lease begins at the
    /// lease's snapshot, because every session registers after it.
    ///
    /// - Returns: the channels as notices; empty when the request failed, which the next sweep makes up for.
    func notices(under lease: (epoch: Int64, snapshot: String)) async -> [ChannelNotice] {
        guard bus.isConnected else { return [] }
        let since = last.withLock { $0.epoch == lease.epoch ? $0.upto : lease.snapshot }
        do throws(BusError) {
            let reply = try await bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { [gatewayID] number in
                .with {
                    $0.correlation = number
                    $0.sweep.gatewayID = gatewayID
                    $0.sweep.since = since
                }
            }
            last.withLock { $0 = (lease.epoch, reply.sweep.upto) }
            return reply.sweep.channels.compactMap { state in
                guard let target = TargetAddress(bus: state.target) else { return nil }
                let address = ChannelAddress(target: target, bizType: BizType(state.bizType))
                return ChannelNotice(channelID: state.channelID, address: address, head: OplogID(state.head))
            }
        } catch {
            logger.debug("sweep failed", metadata: ["error": "\(error)"])
            return []
        }
    }
}
