import DeviceProtocol
import NIOCore
import SyncModel

/// Reads from a device as fast as it may send: slows it, and ends it when that does not help (reliability SEC11).
final class ReadPace: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias InboundOut = Mss_Device_V1_Packet

    private let admission: AdmissionDesk
    private let isInstance: (InstanceID) -> Bool
    private var rates: SessionRates
    /// Nil before a `Connect` of an app that there is.
    private var instanceID: InstanceID?
    private var pausedUntil: ContinuousClock.Instant?
    private var isRefused = false

    /// - Parameter isInstance: whether there is such an app; others are not counted, or a liar could fill the table.
    init(admission: AdmissionDesk, isInstance: @escaping (InstanceID) -> Bool) {
        self.admission = admission
        self.isInstance = isInstance
        rates = SessionRates(limits: admission.limits, now: .now)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        let (packet, now) = (unwrapInboundIn(data), ContinuousClock.now)
        if let reason = refusal(of: packet, at: now) {
            refuse(context, .overloaded, "too many connections or binds; come back later", reason)
            return
        }
        let cost = FrameCost(of: packet)
        guard case .slow(var wait) = rates.took(cost, at: now) else {
            refuse(context, .tooManyFrames, "more frames than a device may send", .deviceRate)
            return
        }
        if cost == .request, let instanceID { wait = max(wait, admission.requests(instanceID, at: now)) }
        if wait > .zero { pause(context, until: now + wait) }
        context.fireChannelRead(data)
    }

    /// A device that sends and does not read is not read from either: what it asks for would pile up here.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        setReading(context)
        context.fireChannelWritabilityChanged()
    }

    /// What the app, or the user, has used up.
    private func refusal(of packet: Mss_Device_V1_Packet, at now: ContinuousClock.Instant) -> AdmissionRefusal? {
        var bind: Mss_Device_V1_Bind?
        if case .connect(let connect)? = packet.body, instanceID == nil {
            let named = InstanceID(connect.instanceID)
            guard isInstance(named) else { return nil }
            instanceID = named
            guard admission.connects(named, at: now) else { return .appRate }
            bind = connect.bind
        } else if case .bind(let later)? = packet.body {
            bind = later
        }
        guard let instanceID, let bind, !bind.userID.isEmpty else { return nil }
        return admission.binds(UserID(bind.userID), of: instanceID, at: now) ? nil : .userRate
    }

    private func refuse(
        _ context: ChannelHandlerContext, _ code: CloseCode, _ words: String, _ reason: AdmissionRefusal
    ) {
        isRefused = true
        admission.count(reason)
        context.fireUserInboundEventTriggered(RateRefusal(code: code, reason: words))
    }

    private func pause(_ context: ChannelHandlerContext, until end: ContinuousClock.Instant) {
        let isPaused = pausedUntil != nil
        pausedUntil = end
        guard !isPaused else { return }
        setReading(context)
        resume(context, in: ContinuousClock.now.duration(to: end))
    }

    /// One alarm at a time: what came meanwhile may have put the end off.
    private func resume(_ context: ChannelHandlerContext, in wait: Duration) {
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(wait)) {
            guard let end = self.pausedUntil, context.channel.isActive else { return }
            let rest = ContinuousClock.now.duration(to: end)
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
