import DeviceProtocol
import NIOCore
import ServerTLS
import SyncModel

/// Reads from a device as fast as it may send: slows it, and ends it when that does not help (reliability SEC11). Ends
/// also one that does not read what is sent to it (reliability SEC3).
final class ReadPace: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias InboundOut = Mss_Device_V1_Packet

    /// How long the bytes that wait for a device may stay above what a channel takes as writable (in NIO: once there
    /// were more than 64 KiB of them, until there are less than 32). What is lost with the connection is sent again.
    static let stall = TimeAmount.seconds(30)

    private let admission: AdmissionDesk
    private let app: () -> InstanceID?
    private let clock: () -> ContinuousClock.Instant
    private var rates: SessionRates
    private var pausedUntil: ContinuousClock.Instant?
    private var isRefused = false
    /// Runs while the device does not read.
    private var stallAlarm: Scheduled<Void>?

    /// - Parameters:
    ///   - app: whose device it is; nil before its `Connect` was taken: a stranger costs no app anything.
    ///   - clock: for tests.
    init(
        admission: AdmissionDesk, app: @escaping () -> InstanceID?,
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
        guard case .slow(var wait) = rates.took(cost, at: now) else {
            isRefused = true
            admission.count(.deviceRate)
            context.fireUserInboundEventTriggered(
                RateRefusal(code: .tooManyFrames, reason: "more frames than a device may send"))
            return
        }
        if let instanceID = app() { wait = max(wait, admission.took(cost, of: instanceID, at: now)) }
        if wait > .zero { pause(context, until: now + wait) }
        context.fireChannelRead(data)
    }

    /// A device that sends and does not read is not read from either: what it asks for would pile up here. What waits
    /// for it already is not kept for long.
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
        // A frame that costs little does not shorten what one before it has cost.
        pausedUntil = max(pausedUntil ?? end, end)
        guard !isPaused else { return }
        setReading(context)
        resume(context, in: clock().duration(to: end))
    }

    /// One alarm at a time: what came meanwhile may have put the end off.
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
