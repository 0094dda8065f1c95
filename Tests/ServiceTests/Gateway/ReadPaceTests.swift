import DeviceProtocol
import NIOCore
import NIOEmbedded
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("A device that floods is slowed down or closed")
struct ReadPaceTests {
    /// Collects the frames that arrive and the answers to the device.
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

    /// A clock that the test sets.
    private final class Clock {
        var now = ContinuousClock.now
    }

    private struct Device {
        let channel = EmbeddedChannel()
        let session = Session()
        let clock = Clock()

        /// - Parameter app: the device's app. A nil value means: the device is unknown.
        init(_ desk: AdmissionController, app: String? = "i") throws {
            let clock = clock
            try channel.pipeline.syncOperations.addHandlers(
                ReadPace(admission: desk, app: { app.map { InstanceID($0) } }, clock: { clock.now }), session)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func send(_ fill: (inout Mss_Device_V1_Packet) -> Void) throws {
            try channel.writeInbound(Mss_Device_V1_Packet.with(fill))
        }

        /// Moves the clock.
        func advance(_ duration: Duration) {
            clock.now += duration
            channel.embeddedEventLoop.advanceTime(by: TimeAmount(duration))
        }

        /// Sets whether the channel's buffers are below their limit.
        func setWritable(_ isWritable: Bool) {
            channel.isWritable = isWritable
            channel.pipeline.fireChannelWritabilityChanged()
        }

        /// The last value of `autoRead`; the embedded channel always reports true.
        var isRead: Bool {
            let set = channel.options.first { $0.option is ChannelOptions.Types.AutoReadOption }
            return set?.value as? Bool ?? true
        }
    }

    private func desk(_ change: (inout AdmissionLimits) -> Void = { _ in }) -> AdmissionController {
        var limits = AdmissionLimits()
        change(&limits)
        return AdmissionController(limits: limits)
    }

    @Test("SEC11: too many frames: reading stops, then 2002 closes the device; others are read")
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

    @Test("SEC11: too many requests of one app slow its requesting devices by at most 4 s, never close them")
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

    @Test("SEC11: too many binds, subscriptions or foreground changes of one app slow its devices only")
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
        // Frames that were read before the device was slowed down.
        for _ in 0..<5 { try device.send { $0.historyRequest.requestNumber = 1 } }
        device.advance(.milliseconds(2_900))
        #expect(!device.isRead, "three seconds are owed")
        device.advance(.milliseconds(200))
        #expect(device.isRead && device.session.refusals.isEmpty)
    }

    @Test("SEC3: a device that reads nothing for 30 s is closed; one that reads slowly is not")
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
