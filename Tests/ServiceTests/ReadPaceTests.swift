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

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { packets.append(unwrapInboundIn(data)) }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let refusal = event as? RateRefusal { refusals.append(refusal) }
        }
    }

    private struct Device {
        let channel = EmbeddedChannel()
        let session = Session()

        init(_ desk: AdmissionDesk) throws {
            try channel.pipeline.syncOperations.addHandlers(
                ReadPace(admission: desk, isInstance: { $0.text == "i" }), session)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func send(_ fill: (inout Mss_Device_V1_Packet) -> Void) throws {
            try channel.writeInbound(Mss_Device_V1_Packet.with(fill))
        }

        func connect(instance: String = "i", user: String = "") throws {
            try send {
                $0.connect.instanceID = instance
                if !user.isEmpty { $0.connect.bind.userID = user }
            }
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

    @Test("SEC11: of one app too many connect: 2001; another app's device and one without an app are not counted")
    func appConnects() throws {
        let desk = desk { $0.appConnects = 1 }
        for index in 0..<6 {
            // No such app: it costs nobody anything, and the table nothing.
            try Device(desk).connect(instance: "none")
            let device = try Device(desk)
            try device.connect()
            #expect(device.session.refusals.map(\.code) == (index < 4 ? [] : [.overloaded]))
            #expect(device.session.packets.count == (index < 4 ? 1 : 0))
        }
    }

    @Test("SEC11: one user is bound too often: 2001, at the connect or later; other users are bound")
    func userBinds() throws {
        let desk = desk { $0.userBinds = 1 }
        for index in 0..<6 {
            let device = try Device(desk)
            try device.connect(user: "u")
            #expect(device.session.refusals.map(\.code) == (index < 4 ? [] : [.overloaded]))
        }
        let device = try Device(desk)
        try device.connect()
        try device.send { $0.bind.userID = "v" }
        try device.send { $0.bind.bindNumber = 2 }
        #expect(device.session.refusals.isEmpty)
        try device.send { $0.bind.userID = "u" }
        #expect(device.session.refusals.map(\.code) == [.overloaded])
    }

    @Test("SEC11: of one app too many ask: those who ask are slowed, for at most four seconds, and never closed")
    func appRequests() throws {
        let desk = desk { $0.appRequests = 1 }
        let device = try Device(desk)
        try device.connect()
        for _ in 0..<50 { try device.send { $0.historyRequest.requestNumber = 1 } }
        #expect(!device.isRead)
        #expect(device.session.packets.count == 51 && device.session.refusals.isEmpty)
        let quiet = try Device(desk)
        try quiet.connect()
        try quiet.send { $0.ping.number = 1 }
        #expect(quiet.isRead)
    }
}
