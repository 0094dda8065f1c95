import DeviceProtocol
import NIOCore
import ServerTLS
import SyncModel

/// Limits the rate at which frames are read from a device, and ends the connection if the device exceeds the limit
/// anyway (SEC11). It also ends the connection of a device that does not read (SEC3).
final class ReadPace: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias InboundOut = Mss_Device_V1_Packet

    /// Maximum time that a channel may stay unwritable. NIO reports it so from 64 KiB of waiting bytes until less than
    /// 32 KiB wait. Data that is lost with the connection is sent again.
    static let stall = TimeAmount.seconds(30)

    private let admission: AdmissionController
    private let app: () -> InstanceID?
    private let clock: () -> ContinuousClock.Instant
    private var rates: SessionRates
    private var pausedUntil: ContinuousClock.Instant?
    private var isRefused = false
    /// Scheduled while the channel is unwritable.
    private var stallAlarm: Scheduled<Void>?

    /// - Parameters:
    ///   - app: the instance of the device; nil before its `Connect` was accepted, because an unknown peer must not use
    ///     an app's rate.
    ///   - clock: the steady clock; tests replace it.
    init(
        admission: AdmissionController, app: @escaping () -> InstanceID?,
        clock: @escaping () -> ContinuousClock.Instant = { .now }
    ) {
        self.admission = admission
        self.app = app
        self.clock = clock
        rates = SessionRates(limits: admission.limits, now: clock())
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        let (cost, now) = (FrameCost(of: unwrapInboundIn(data)), clock())
        guard case .slow(var wait) = rates.charge(cost, at: now) else {
            isRefused = true
            admission.count(.deviceRate)
            context.fireUserInboundEventTriggered(
                RateRefusal(code: .tooManyFrames, reason: "more frames than a device may send"))
            return
        }
        if let instanceID = app() { wait = max(wait, admission.charge(cost, of: instanceID, at: now)) }
        if wait > .zero { pause(context, until: now + wait) }
        context.fireChannelRead(data)
    }

    /// Stops reading from a device that does not read: the replies would accumulate in memory. After `stall`, it ends
    /// the connection.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        setReading(context)
        stallAlarm?.cancel()
        stallAlarm = nil
        if !context.channel.isWritable {
            stallAlarm = context.eventLoop.assumeIsolated().scheduleTask(in: Self.stall) {
                self.admission.count(.stalled)
                context.pipeline.syncOperations.closePastTLS()
            }
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        stallAlarm?.cancel()
        context.fireChannelInactive()
    }

    private func pause(_ context: ChannelHandlerContext, until end: ContinuousClock.Instant) {
        let isPaused = pausedUntil != nil
        // A cheap frame does not shorten the pause of an earlier, expensive one.
        pausedUntil = max(pausedUntil ?? end, end)
        guard !isPaused else { return }
        setReading(context)
        resume(context, in: clock().duration(to: end))
    }

    /// One scheduled task at a time. Frames during the wait may have extended the pause.
    private func resume(_ context: ChannelHandlerContext, in wait: Duration) {
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(wait)) {
            guard let end = self.pausedUntil, context.channel.isActive else { return }
            let rest = self.clock().duration(to: end)
            if rest > .zero { return self.resume(context, in: rest) }
            self.pausedUntil = nil
            self.setReading(context)
        }
    }

    private func setReading(_ context: ChannelHandlerContext) {
        let isReading = context.channel.isWritable && pausedUntil == nil
        context.channel.setOption(.autoRead, value: isReading).assumeIsolated().whenComplete { _ in }
    }
}
