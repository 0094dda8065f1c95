import DeviceProtocol
import NIOCore
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway
@testable import MQTT

@Suite("D13: an MQTT client is a simple device") struct MQTTSessionTests {
    /// An MQTT client, with the packets for it and the frames for the gateway.
    private struct Client {
        var session = MQTTSession()
        var isClosed = false
        var now = WallTime(milliseconds: 1_000)

        /// Collects the frames for the gateway and the packets for the client from outputs.
        mutating func collect(
            _ outputs: [MQTTSession.Output]
        ) -> (frames: [Mss_Device_V1_Packet], packets: [MQTTServerPacket]) {
            var (frames, packets): ([Mss_Device_V1_Packet], [MQTTServerPacket]) = ([], [])
            for output in outputs {
                switch output {
                case .toGateway(let frame): frames.append(frame)
                case .toClient(let packet): packets.append(packet)
                case .close: isClosed = true
                }
            }
            return (frames, packets)
        }

        mutating func sends(
            _ packet: MQTTClientPacket
        ) -> (frames: [Mss_Device_V1_Packet], packets: [MQTTServerPacket]) {
            collect(session.received(packet, at: now))
        }

        mutating func gets(
            _ fill: (inout Mss_Device_V1_Packet) -> Void
        ) -> (frames: [Mss_Device_V1_Packet], packets: [MQTTServerPacket]) {
            collect(session.received(Mss_Device_V1_Packet.with(fill), at: now))
        }

        /// Makes a client that is accepted and has subscribed to everything.
        static func open(
            _ version: MQTTVersion = .v5, filters: [(String, UInt8)] = [("#", 1)], receiveMaximum: UInt16 = .max
        ) -> Client {
            var client = Client()
            var connect = MQTTSessionTests.connect(version)
            connect.receiveMaximum = receiveMaximum
            _ = client.sends(.connect(connect))
            _ = client.gets { $0.connected.maxHeartbeatSeconds = 300 }
            _ = client.gets {
                $0.bindResult.bindNumber = 1
                $0.bindResult.accepted = true
            }
            _ = client.sends(
                .subscribe(packetID: 1, filters.map { .init(filter: $0.0, qualityOfService: $0.1) }))
            return client
        }
    }

    private static func connect(_ version: MQTTVersion, user: String? = "w_app/u") -> MQTTConnect {
        MQTTConnect(
            version: version, isCleanStart: false, keepAlive: 30, clientID: "d", userName: user,
            password: Array("s".utf8))
    }

    private static func batch(
        _ bizType: String, after: Int64, upto: Int64, _ ids: [Int64], reread: UInt64 = 0
    ) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.bizType = bizType
            $0.bindNumber = 1
            $0.after = after
            $0.upto = upto
            $0.reread = reread
            $0.entries = ids.map { id in
                .with {
                    $0.oplogID = id
                    $0.payload = .init("p\(id)".utf8)
                }
            }
        }
    }

    /// Topics, payloads and packet ids of the publications to the client.
    private static func publishes(_ packets: [MQTTServerPacket]) -> [String] {
        packets.compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            return "\(publish.topic) \(String(buffer: publish.payload)) \(publish.packetID ?? 0)"
        }
    }

    /// The acknowledgements: Sync ID and id, and re-reads.
    private static func acknowledged(_ frames: [Mss_Device_V1_Packet]) -> [String] {
        frames.flatMap { frame -> [String] in
            guard case .storedAck(let stored)? = frame.body else { return [] }
            return stored.channels.map { "\($0.bizType) \($0.upto)" } + stored.rereads.map { "reread \($0)" }
        }
    }

    @Test("CONNECT becomes a Connect of a simple client, accepted when the gateway has bound its user")
    func connects() {
        var client = Client()
        let (frames, packets) = client.sends(.connect(Self.connect(.v311)))
        let connect = frames.first?.connect ?? .init()
        #expect(packets.isEmpty && connect.instanceID == "w_app" && connect.deviceID == "d" && connect.simple)
        #expect(connect.bind.userID == "u" && connect.bind.sessionID == "s" && connect.bind.bindNumber == 1)
        let connected = client.gets { $0.connected.maxHeartbeatSeconds = 300 }
        // 1.5 times the keep-alive, divided by the gateway's factor of 2.5.
        #expect(connected.packets.isEmpty && connected.frames.first?.ping.intervalSeconds == 18)
        // Packets that the client sends before CONNACK are not lost.
        #expect(client.sends(.pingreq).frames.isEmpty)
        let bound = client.gets { $0.bindResult.accepted = true }
        #expect(bound.packets == [.connack(isSessionPresent: false, .success)])
        #expect(bound.frames.first?.ping.number == 1)
        #expect(client.gets { $0.pong.number = 0 }.packets.isEmpty, "of a ping that the client did not send")
        #expect(client.gets { $0.pong.number = 1 }.packets == [.pingresp])
    }

    @Test("without a user it is accepted at once; without instance or device it is refused")
    func refusals() {
        var alone = Client()
        let connect = alone.sends(.connect(Self.connect(.v5, user: "w_app"))).frames.first?.connect
        #expect(connect?.instanceID == "w_app" && connect?.hasBind == false)
        // CONNACK names the keep-alive to a client that pings never or seldom.
        let packets = alone.gets { $0.connected.maxHeartbeatSeconds = 20 }.packets
        #expect(packets == [.connack(isSessionPresent: false, .success, keepAlive: 20)])
        for (change, reason) in [
            ({ $0.clientID = "" }, MQTTReason.clientIDNotValid), ({ $0.userName = nil }, .badUserNameOrPassword),
            ({ $0.userName = "/u" }, .badUserNameOrPassword), ({ $0.password = [0xFF] }, .badUserNameOrPassword),
            ({ $0.maximumPacketSize = 8_191 }, .packetTooLarge),
        ] as [((inout MQTTConnect) -> Void, MQTTReason)] {
            var (client, connect) = (Client(), Self.connect(.v5))
            change(&connect)
            #expect(client.sends(.connect(connect)).packets == [.connack(isSessionPresent: false, reason)])
            #expect(client.isClosed)
        }
        var unbound = Client()
        _ = unbound.sends(.connect(Self.connect(.v5)))
        let refused = unbound.gets { $0.bindResult.reason = "no" }
        #expect(refused.packets == [.connack(isSessionPresent: false, .notAuthorized)] && unbound.isClosed)
        var old = Client()
        #expect(
            old.collect(old.session.received(MQTTFault.unsupportedVersion)).packets
                == [.connack(isSessionPresent: false, .unsupportedVersion)])
    }

    @Test("data arrives as PUBLISH in order; PUBACKs without a gap acknowledge it")
    func acknowledges() {
        var client = Client.open()
        let given = client.gets { $0.push.batches = [Self.batch("UCHAT", after: 0, upto: 9, [3, 5, 7])] }
        #expect(Self.publishes(given.packets) == ["UCHAT p3 1", "UCHAT p5 2", "UCHAT p7 3"])
        #expect(Self.acknowledged(given.frames).isEmpty)
        #expect(Self.acknowledged(client.sends(.puback(packetID: 2)).frames).isEmpty)
        #expect(Self.acknowledged(client.sends(.puback(packetID: 1)).frames) == ["UCHAT 5"])
        // The gateway's resend ladder sends the batch again. Packets that the client has are not sent twice.
        let again = client.gets { $0.push.batches = [Self.batch("UCHAT", after: 5, upto: 9, [7])] }
        #expect(again.packets.isEmpty)
        #expect(Self.acknowledged(client.sends(.puback(packetID: 3)).frames) == ["UCHAT 9"])
        // A batch without entries is acknowledged at once.
        let passed = client.gets { $0.push.batches = [Self.batch("UCHAT", after: 9, upto: 12, [])] }
        #expect(passed.packets.isEmpty && Self.acknowledged(passed.frames) == ["UCHAT 12"])
        // The gateway also counts packets without effect.
        #expect(client.sends(.puback(packetID: 99)).frames.count == 1)
    }

    @Test("with QoS 0 sent data counts as acknowledged; the client's window limits data in flight")
    func windows() {
        var careless = Client.open(filters: [("UCHAT", 0)])
        let sent = careless.gets { $0.push.batches = [Self.batch("UCHAT", after: 0, upto: 2, [1, 2])] }
        #expect(Self.publishes(sent.packets) == ["UCHAT p1 0", "UCHAT p2 0"])
        #expect(Self.acknowledged(sent.frames) == ["UCHAT 2"])
        var slow = Client.open(receiveMaximum: 2)
        #expect(slow.session.room == 2)
        let first = slow.gets { $0.push.batches = [Self.batch("UCHAT", after: 0, upto: 2, [1, 2])] }
        #expect(Self.publishes(first.packets).count == 2 && slow.session.room == 0)
        #expect(slow.sends(.puback(packetID: 2)).packets.isEmpty && slow.session.room == 1)
        #expect(slow.sends(.puback(packetID: 7)).frames.count == 1 && slow.session.room == 1, "it was not in use")
    }

    @Test("D11: an expired oplog is not sent and the position rises; others name their validity") func validity() {
        var client = Client.open()
        var batch = Self.batch("UCHAT", after: 0, upto: 4, [1, 2, 3, 4])
        for (index, end) in [1_000, 3_500, 3_500, 9_000].enumerated() { batch.entries[index].validUntilMs = Int64(end) }
        func expiries(_ packets: [MQTTServerPacket]) -> [UInt32?] {
            packets.map { packet in if case .publish(let publish) = packet { publish.expiry } else { nil } }
        }
        let sent = client.gets { $0.push.batches = [batch] }
        #expect(Self.publishes(sent.packets) == ["UCHAT p2 1", "UCHAT p3 2", "UCHAT p4 3"])
        #expect(expiries(sent.packets) == [3, 3, 8] && Self.acknowledged(sent.frames) == ["UCHAT 1"])
    }

    @Test("a topic without subscription is suspended at the gateway until the client subscribes")
    func subscriptions() {
        var client = Client.open(filters: [("UCHAT", 1)])
        #expect(client.session.accepts("UCHAT") && !client.session.accepts("NEWS"))
        let other = client.collect(client.session.suspend(["NEWS"]))
        #expect(other.packets.isEmpty && other.frames.map(\.subscriptions.suspended) == [["NEWS"]])
        #expect(client.collect(client.session.suspend(["NEWS"])).frames.isEmpty, "the gateway knows")
        let asked = client.sends(
            .subscribe(
                packetID: 7,
                [
                    .init(filter: "NEWS", qualityOfService: 2), .init(filter: "a#", qualityOfService: 1),
                    .init(filter: "$share/g/x", qualityOfService: 1),
                ]))
        #expect(
            asked.packets == [
                .suback(packetID: 7, [.grantedQoS1, .topicFilterInvalid, .sharedSubscriptionsNotSupported])
            ])
        #expect(asked.frames.map(\.subscriptions.suspended) == [[]])
        let news = client.gets { $0.push.batches = [Self.batch("NEWS", after: 0, upto: 1, [1])] }
        #expect(Self.publishes(news.packets) == ["NEWS p1 1"])
        let ended = client.sends(.unsubscribe(packetID: 8, filters: ["NEWS", "never"]))
        #expect(ended.packets == [.unsuback(packetID: 8, [.success, .noSubscriptionExisted])])
        #expect(!client.session.accepts("NEWS"))
        let many = client.collect(client.session.suspend(Set((0...200).map { "kind \($0)" })))
        #expect(many.packets.count == 1 && client.isClosed, "more than the gateway takes")
    }

    @Test("before the first SUBSCRIBE a client takes no data")
    func beforeSubscribe() {
        var client = Client()
        _ = client.sends(.connect(Self.connect(.v311)))
        _ = client.gets { $0.connected.maxHeartbeatSeconds = 300 }
        _ = client.gets { $0.bindResult.accepted = true }
        #expect(client.session.room == 0)
        let packets = client.sends(.subscribe(packetID: 1, [.init(filter: "#", qualityOfService: 1)])).packets
        #expect(packets == [.suback(packetID: 1, [.grantedQoS1])] && client.session.room == 100)
    }

    @Test("a recall comes under a topic of its own, a re-read is acknowledged by its number")
    func recallsAndRereads() {
        var client = Client.open(filters: [("UCHAT/#", 1)])
        var recall = Self.batch("UCHAT", after: 0, upto: 8, [8])
        recall.entries[0].recalls = 5
        #expect(Self.publishes(client.gets { $0.push.batches = [recall] }.packets) == ["UCHAT/recall 5 1"])
        let reread = client.gets { $0.push.batches = [Self.batch("UCHAT", after: 0, upto: 0, [3, 4], reread: 77)] }
        #expect(Self.publishes(reread.packets) == ["UCHAT p3 2", "UCHAT p4 3"])
        #expect(Self.acknowledged(client.sends(.puback(packetID: 2)).frames).isEmpty)
        #expect(Self.acknowledged(client.sends(.puback(packetID: 3)).frames) == ["reread 77"])
        #expect(Self.acknowledged(client.sends(.puback(packetID: 1)).frames) == ["UCHAT 8"])
        // A client that has not subscribed to recalls receives none, and its position still rises.
        var plain = Client.open(filters: [("UCHAT", 1)])
        let quiet = plain.gets { $0.push.batches = [recall] }
        #expect(quiet.packets.isEmpty && Self.acknowledged(quiet.frames) == ["UCHAT 8"])
    }

    @Test("a gateway's close code becomes an MQTT reason; a forbidden packet ends the connection")
    func ends() {
        for (code, reason) in [
            (.superseded, MQTTReason.sessionTakenOver), (.draining, .serverShuttingDown), (.idle, .keepAliveTimeout),
            (.overloaded, .serverBusy), (.signatureRefused, .notAuthorized),
        ] as [(CloseCode, MQTTReason)] {
            var client = Client.open()
            let packets = client.gets { $0.close.code = code.rawValue }.packets
            #expect(packets == [.disconnect(reason)] && client.isClosed)
        }
        var moved = Client.open()
        let packets = moved.gets {
            $0.close.code = 3_000
            $0.close.address = "b:1"
        }.packets
        #expect(packets == [.disconnect(.useAnotherServer, reference: "b:1")])
        for packet: MQTTClientPacket in [
            .publish(.init(topic: "t", qualityOfService: 0, packetID: 0)), .auth, .pubrel(packetID: 1),
        ] {
            var client = Client.open()
            _ = client.sends(packet)
            #expect(client.isClosed)
        }
        var polite = Client.open()
        #expect(polite.sends(.disconnect).frames.first?.close.code == 1_000 && polite.isClosed)
    }

    @Test("sent packets have the bytes of the specifications", arguments: [MQTTVersion.v311, .v5])
    func bytes(version: MQTTVersion) {
        func bytes(_ packet: MQTTServerPacket) -> [UInt8] {
            var buffer = ByteBuffer()
            MQTTEncoder(version: version, maxBytes: 256).encode(packet, into: &buffer)
            return Array(buffer.readableBytesView)
        }
        var publish = MQTTPublish(topic: "t", payload: ByteBuffer(string: "p"), packetID: 258)
        publish.expiry = 1
        publish.userProperties = [.init("a", "b")]
        if version == .v5 {
            let capabilities: [UInt8] = [0x24, 1, 0x25, 0, 0x27, 0, 0, 1, 0, 0x2A, 0, 0x13, 0, 9]
            #expect(
                bytes(.connack(isSessionPresent: false, .success, keepAlive: 9)) == [0x20, 17, 0, 0, 14] + capabilities)
            #expect(bytes(.connack(isSessionPresent: false, .notAuthorized)) == [0x20, 3, 0, 0x87, 0])
            #expect(
                bytes(.publish(publish))
                    == [0x32, 19, 0, 1, 0x74, 1, 2, 12, 2, 0, 0, 0, 1, 0x26, 0, 1, 0x61, 0, 1, 0x62, 0x70])
            #expect(bytes(.suback(packetID: 1, [.topicFilterInvalid])) == [0x90, 4, 0, 1, 0, 0x8F])
            #expect(bytes(.unsuback(packetID: 1, [.success])) == [0xB0, 4, 0, 1, 0, 0])
            #expect(bytes(.disconnect(.serverBusy, text: "x")) == [0xE0, 6, 0x89, 4, 0x1F, 0, 1, 0x78])
        } else {
            #expect(bytes(.connack(isSessionPresent: false, .success, keepAlive: 9)) == [0x20, 2, 0, 0])
            #expect(bytes(.connack(isSessionPresent: false, .notAuthorized)) == [0x20, 2, 0, 5])
            #expect(bytes(.publish(publish)) == [0x32, 6, 0, 1, 0x74, 1, 2, 0x70])
            #expect(bytes(.suback(packetID: 1, [.topicFilterInvalid, .success])) == [0x90, 4, 0, 1, 0x80, 0])
            #expect(bytes(.unsuback(packetID: 1, [.success])) == [0xB0, 2, 0, 1])
            #expect(bytes(.disconnect(.serverBusy)) == [])
        }
        #expect(bytes(.pingresp) == [0xD0, 0])
    }
}
