import DeviceProtocol
import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import SwiftProtobuf
import Testing

@testable import BareChain
@testable import LoadGenerator

@Suite("The bare chain answers what the load generator sends") struct BareChainTests {
    /// The frames that the device has received, as it reads them.
    private func frames(from channel: EmbeddedChannel) throws -> [Mss_Device_V1_Packet] {
        var (stream, packets) = (FrameStream(), [Mss_Device_V1_Packet]())
        while let part = try channel.readOutbound(as: ByteBuffer.self) {
            try stream.append(part) { frame in
                packets.append((try? Mss_Device_V1_Packet(serializedBytes: Array(frame))) ?? Mss_Device_V1_Packet())
            }
        }
        return packets
    }

    @Test("records survive a body, also two bodies in one") func records() {
        let pushes = [
            PushRecord(correlation: .max, user: "u-ä", thirdMessageID: "m1", payload: [0, 1, 255]),
            PushRecord(correlation: 1, user: "", thirdMessageID: "", payload: []),
        ]
        #expect(PushRecord.all(in: pushes[0].body + pushes[1].body) == pushes)
        let stored = StoredRecord(correlation: 7, oplogID: 9)
        #expect(StoredRecord.all(in: stored.body) == [stored])
        let notice = NoticeRecord(user: "u", oplogID: 3, payload: [5])
        #expect(NoticeRecord.all(in: notice.body + notice.body) == [notice, notice])
        #expect(StoredRecord.all(in: []) == [])
    }

    @Test("a body that ends within a record is refused") func cutRecords() {
        let body = PushRecord(correlation: 1, user: "u", thirdMessageID: "m", payload: [1, 2]).body
        for end in 1..<body.count { #expect(PushRecord.all(in: Array(body[..<end])) == nil, "\(end)") }
    }

    @Test("a call of the load generator has the members") func members() throws {
        let plan = LoadPlan(
            scenario: .single(.rate(perSecond: 1, seconds: 1)), part: LoadPlan.Part(), instance: "i", run: "r123456")
        let template = CallTemplate(.single, plan, host: "localhost")
        var call = template.makeBuffer()
        template.fill(&call, first: 40, due: 0xab_cdef) { _ in 7 }
        let body = try #require(String(buffer: call).components(separatedBy: "\r\n\r\n").last)
        let members = try #require(PushMembers(ByteBuffer(string: body)))
        #expect(members.user == "load-r123456-0000007" && members.thirdMessageID == "r123456-0000000040")
        #expect(members.payload.count == plan.scenario.payloadBytes)
        let stamp = members.payload.withUnsafeBytes { PushStamp($0, run: Array("r123456".utf8)) }
        #expect(stamp?.number == 40 && stamp?.due == 0xab_cdef)
        for end in [0, 10, body.utf8.count - plan.scenario.payloadBytes - 20] {
            #expect(PushMembers(ByteBuffer(string: String(body.prefix(end)))) == nil)
        }
    }

    @Test("the handler collects a call that arrives in parts") func parts() throws {
        var bodies: [String] = []
        let channel = EmbeddedChannel(handler: BareCallHandler { body, _ in bodies.append(String(buffer: body)) })
        let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
        for texts in [["a", "bc"], [], ["d"]] {
            try channel.writeInbound(HTTPServerRequestPart.head(head))
            for text in texts { try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: text))) }
            try channel.writeInbound(HTTPServerRequestPart.end(nil))
        }
        #expect(bodies == ["abc", "", "d"])
    }

    @Test("the load generator reads the response", arguments: [(Int64(5), "SUCCESS"), (0, "SYSTEM_ERROR")])
    func response(oplogID: Int64, code: String) throws {
        let channel = EmbeddedChannel(handler: HTTPResponseEncoder())
        BareIngest.answer(channel, oplogID: oplogID)
        var (stream, codes) = (AnswerStream(), [String]?.none)
        while var part = try channel.readOutbound(as: ByteBuffer.self) { codes = stream.append(&part) }
        #expect(codes == [code] && !stream.isLast)
    }

    @Test("a device connects, gets its user's pushes in order, and its reports are answered") func device() throws {
        let gateway = BareGateway(logger: Logger(label: "test"))
        let channel = EmbeddedChannel(handler: BareDeviceHandler(gateway))
        try channel.writeInbound(
            Mss_Device_V1_Packet.with {
                $0.connect.bind.bindNumber = 4
                $0.connect.bind.userID = "u"
            })
        let opening = try frames(from: channel)
        #expect(opening.count == 3)
        #expect(opening.first?.connected.heartbeatSeconds == 60)
        #expect(opening.dropFirst().first?.bindResult.accepted == true)
        #expect(opening.last?.caughtUp.bindNumber == 4)

        let notices = (1...2).map { NoticeRecord(user: "u", oplogID: $0, payload: [UInt8($0)]) }
        gateway.deliver([notices[0].body + NoticeRecord(user: "stranger", oplogID: 1, payload: []).body])
        gateway.deliver([notices[1].body])
        channel.embeddedEventLoop.run()
        let batches = try frames(from: channel).flatMap(\.push.batches)
        #expect(batches.map(\.after) == [0, 1] && batches.map(\.upto) == [1, 2])
        #expect(batches.allSatisfy { $0.bizType == "UCHAT" && $0.bindNumber == 4 })
        #expect(batches.flatMap(\.entries).map { Array($0.payload) } == [[1], [2]])

        try channel.writeInbound(Mss_Device_V1_Packet.with { $0.storedAck = .init() })
        #expect(try frames(from: channel).isEmpty)
        try channel.writeInbound(Mss_Device_V1_Packet.with { $0.confirmReport.reportID = 8 })
        #expect(try frames(from: channel).map(\.confirmRecorded.reportID) == [8])
        try channel.writeInbound(Mss_Device_V1_Packet.with { $0.ping.number = 3 })
        #expect(try frames(from: channel).map(\.pong.number) == [3])
    }

    @Test("the end of an older connection does not remove the newer one") func reconnect() throws {
        let gateway = BareGateway(logger: Logger(label: "test"))
        func connect() throws -> EmbeddedChannel {
            let channel = EmbeddedChannel(handler: BareDeviceHandler(gateway))
            try channel.writeInbound(Mss_Device_V1_Packet.with { $0.connect.bind.userID = "u" })
            _ = try frames(from: channel)
            return channel
        }
        let (older, newer) = (try connect(), try connect())
        older.pipeline.fireChannelInactive()
        gateway.deliver([NoticeRecord(user: "u", oplogID: 1, payload: [1]).body])
        newer.embeddedEventLoop.run()
        #expect(try frames(from: newer).count == 1)
        newer.pipeline.fireChannelInactive()
        gateway.deliver([NoticeRecord(user: "u", oplogID: 2, payload: [1]).body])
        newer.embeddedEventLoop.run()
        #expect(try frames(from: newer).isEmpty)
    }
}
