import DeviceProtocol
import NIOCore
import NIOEmbedded
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("A device that floods is not read from, or closed")
struct ReadPaceTests {
    /// What came through, and what was said.
    private final class Session: ChannelInboundHandler {
        typealias InboundIn = Mss_Device_V1_Packet
        var packets: [Mss_Device_V1_Packet] = []
        var refusals: [RateRefusal] = []
        var isClosed = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { packets.append(unwrapInboundIn(data)) }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let refusal = event as? RateRefusal { refusals.append(refusal) }
        }
        func channelInactive(context: ChannelHandlerContext) { isClosed = true }
    }

    /// What the time is.
    private final class Clock {
        var now = ContinuousClock.now
    }

    private struct Device {
        let channel = EmbeddedChannel()
        let session = Session()
        let clock = Clock()

        /// - Parameter app: whose device it is; nil: it is a stranger.
        init(_ desk: AdmissionDesk, app: String? = "i") throws {
            let clock = clock
            try channel.pipeline.syncOperations.addHandlers(
                ReadPace(admission: desk, app: { app.map { InstanceID($0) } }, clock: { clock.now }), session)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func send(_ fill: (inout Mss_Device_V1_Packet) -> Void) throws {
            try channel.writeInbound(Mss_Device_V1_Packet.with(fill))
        }

        /// Time passes.
        func advance(_ duration: Duration) {
            clock.now += duration
            channel.embeddedEventLoop.advanceTime(by: TimeAmount(duration))
        }

        /// Its buffers fill up, or have room again.
        func setWritable(_ isWritable: Bool) {
            channel.isWritable = isWritable
            channel.pipeline.fireChannelWritabilityChanged()
        }

        /// What autoRead was set to last; this channel keeps what is set and says true.
        var isRead: Bool {
            let set = channel.options.first { $0.option is ChannelOptions.Types.AutoReadOption }
            return set?.value as? Bool ?? true
        }
    }

    private func desk(_ change: (inout AdmissionLimits) -> Void = { _ in }) -> AdmissionDesk {
        var limits = AdmissionLimits()
        change(&limits)
        return AdmissionDesk(limits: limits)
    }

    @Test("SEC11: too many frames: first it is not read from, then it is closed with 2002; others are read from")
    func frames() throws {
        let desk = desk { $0.deviceChanges = 1 }
        let (flooder, other) = (try Device(desk), try Device(desk))
        for _ in 0..<4 { try flooder.send { $0.foreground.foreground = true } }
        #expect(flooder.isRead)
        try flooder.send { $0.foreground.foreground = true }
        #expect(!flooder.isRead)
        #expect(flooder.session.packets.count == 5, "what was read is not lost")
        for _ in 0..<10 { try flooder.send { $0.foreground.foreground = true } }
        #expect(flooder.session.refusals.map(\.code) == [.tooManyFrames])
        #expect(flooder.session.packets.count <= 8, "nothing behind it counts")
        try other.send { $0.foreground.foreground = true }
        #expect(other.isRead && other.session.packets.count == 1)
    }

    @Test("SEC11: of one app too many ask: those who ask are slowed, for at most four seconds, and never closed")
    func appRequests() throws {
        let desk = desk { $0.appRequests = 1 }
        let device = try Device(desk)
        for _ in 0..<50 { try device.send { $0.historyRequest.requestNumber = 1 } }
        #expect(!device.isRead)
        #expect(device.session.packets.count == 50 && device.session.refusals.isEmpty)
        let quiet = try Device(desk)
        try quiet.send { $0.ping.number = 1 }
        #expect(quiet.isRead)
        device.advance(.seconds(4))
        #expect(device.isRead)
    }

    @Test("SEC11: of one app too many bind, subscribe or come to the foreground: they are slowed; others are not")
    func appChanges() throws {
        let desk = desk { $0.appChanges = 1 }
        let devices = try (0..<10).map { _ in try Device(desk) }
        for device in devices { try device.send { $0.bind.userID = "u" } }
        #expect(devices.map(\.isRead) == (0..<10).map { $0 < 4 })
        #expect(devices.count { $0.session.packets.count == 1 && $0.session.refusals.isEmpty } == 10)
        for app in ["other", nil] {
            let other = try Device(desk, app: app)
            try other.send { $0.bind.userID = "u" }
            #expect(other.isRead)
        }
        let asking = try Device(desk)
        try asking.send { $0.historyRequest.requestNumber = 1 }
        #expect(asking.isRead)
    }

    @Test("SEC11: a frame that costs little does not shorten the wait for what cost much")
    func longestWait() throws {
        let desk = desk {
            $0.deviceChanges = 1
            $0.deviceRequests = 1
        }
        let device = try Device(desk)
        for _ in 0..<7 { try device.send { $0.foreground.foreground = true } }
        // What was read before the device was slowed.
        for _ in 0..<5 { try device.send { $0.historyRequest.requestNumber = 1 } }
        device.advance(.milliseconds(2_900))
        #expect(!device.isRead, "three seconds are owed")
        device.advance(.milliseconds(200))
        #expect(device.isRead && device.session.refusals.isEmpty)
    }

    @Test("SEC3: a device that has not taken what was sent to it for 30 s is cut off; one that reads on is not")
    func stall() throws {
        let (stalled, slow) = (try Device(desk()), try Device(desk()))
        for device in [stalled, slow] { device.setWritable(false) }
        #expect(!stalled.isRead, "what it asks for would pile up")
        for device in [stalled, slow] { device.advance(.seconds(29)) }
        slow.setWritable(true)
        #expect(slow.isRead && !stalled.session.isClosed)
        slow.setWritable(false)
        for device in [stalled, slow] { device.advance(.seconds(2)) }
        #expect(stalled.session.isClosed && !stalled.channel.isActive)
        #expect(!slow.session.isClosed)
    }
}
