import DeviceProtocol
import MQTT
import NIOCore
import SwiftProtobuf
import SyncModel

/// One MQTT client as a simple device (D13): translates its packets into frames of the device protocol, and frames into
/// packets; pure. deploy/manual/MQTT.md describes the supported features.
struct MQTTSession {
    /// The result of a packet or a frame.
    enum Output: Hashable {
        case toGateway(Mss_Device_V1_Packet)
        case toClient(MQTTServerPacket)
        /// Ends the connection after the packets before it are sent.
        case close

        var isToGateway: Bool { if case .toGateway = self { true } else { false } }
    }

    private enum Phase { case awaitsConnect, opening, open, ended }

    /// The store id of every client. The server keeps the client's sync points.
    private static let storeID = "mqtt"
    /// Packets that a client may send before CONNACK.
    private static let earlyMax = 16
    /// The smallest packet size that a client must accept: the largest push and its properties.
    static let smallestPacketBytes: UInt32 = 8_192
    /// Maximum size of a client's packet, in bytes.
    static let packetBytesMax = 64 * 1_024

    private var phase = Phase.awaitsConnect
    private(set) var version = MQTTVersion.v311
    private var connect: MQTTConnect?
    private var early: [MQTTClientPacket] = []
    private var subscriptions = MQTTSubscriptions()
    private var deliveries = MQTTDeliveries()
    private var acknowledgements = MQTTAcknowledgements()
    private var pings: UInt64 = 0
    private var now = WallTime(milliseconds: 0)
    /// The interval in force, in seconds.
    private var keepAlive: UInt16 = 0

    /// The number of entries that can be sent now: one for each free packet id.
    var room: Int { subscriptions.hasSubscribed && phase == .open ? deliveries.room : 0 }

    // MARK: From the client

    /// Processes a packet of the client.
    mutating func received(_ packet: MQTTClientPacket, at now: WallTime) -> [Output] {
        self.now = now
        return received(packet)
    }

    private mutating func received(_ packet: MQTTClientPacket) -> [Output] {
        switch (phase, packet) {
        case (.awaitsConnect, .connect(let connect)): return open(connect)
        case (.ended, _), (.awaitsConnect, _): return []
        case (.opening, .disconnect), (.open, .disconnect):
            phase = .ended
            return [.toGateway(.with { $0.close.code = CloseCode.normal.rawValue }), .close]
        case (.opening, _):
            early.append(packet)
            return early.count > Self.earlyMax ? end(.quotaExceeded, "too many packets before CONNACK") : []
        case (.open, .subscribe(let packetID, let added)):
            let reasons = subscriptions.add(added)
            return [.toClient(.suback(packetID: packetID, reasons)), .toGateway(subscriptionsFrame)]
        case (.open, .unsubscribe(let packetID, let filters)):
            let reasons = subscriptions.remove(filters)
            return [.toClient(.unsuback(packetID: packetID, reasons)), .toGateway(subscriptionsFrame)]
        case (.open, .puback(let packetID)): return answered(packetID)
        case (.open, .pingreq):
            pings += 1
            return [.toGateway(.with { $0.ping.number = pings })]
        case (.open, .publish): return end(.notAuthorized, "clients cannot publish: backends push by HTTP")
        case (.open, .connect), (.open, .auth), (.open, .pubrel): return end(.protocolError, "unexpected packet")
        }
    }

    /// Processes bytes that are not a valid packet.
    mutating func received(_ fault: MQTTFault) -> [Output] {
        if phase == .awaitsConnect {
            phase = .ended
            // MQTT 3.1.1 is the version that every client understands.
            let refusal = MQTTServerPacket.connack(isSessionPresent: false, .unsupportedVersion)
            return fault == .unsupportedVersion ? [.toClient(refusal), .close] : [.close]
        }
        return end(MQTTReason(rawValue: fault.rawValue) ?? .malformedPacket, "")
    }

    private mutating func open(_ connect: MQTTConnect) -> [Output] {
        (self.connect, version) = (connect, connect.version)
        deliveries.limit(to: connect.receiveMaximum)
        let parts = (connect.userName ?? "").split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard !connect.clientID.isEmpty else { return refuse(.clientIDNotValid) }
        guard let instance = parts.first, !instance.isEmpty else { return refuse(.badUserNameOrPassword) }
        guard connect.maximumPacketSize ?? .max >= Self.smallestPacketBytes else { return refuse(.packetTooLarge) }
        let user = parts.count == 2 ? String(parts[1]) : ""
        guard let session = String(validating: connect.password ?? [], as: UTF8.self) else {
            return refuse(.badUserNameOrPassword)
        }
        phase = .opening
        let frame = Mss_Device_V1_Packet.with {
            $0.connect.protocolVersion = DeviceProtocolLimits.version
            $0.connect.instanceID = String(instance)
            $0.connect.deviceID = connect.clientID
            $0.connect.storeID = Self.storeID
            $0.connect.sdkVersion = version == .v5 ? "mqtt-5.0" : "mqtt-3.1.1"
            $0.connect.osName = property("osName", of: connect)
            $0.connect.appVersion = property("appVersion", of: connect)
            $0.connect.simple = true
            if !user.isEmpty {
                $0.connect.bind.bindNumber = 1
                $0.connect.bind.userID = user
                $0.connect.bind.sessionID = session
                // A client that continues its session only reconnects.
                $0.connect.bind.requestedByApp = connect.isCleanStart
            }
        }
        return [.toGateway(frame)]
    }

    private func property(_ name: String, of connect: MQTTConnect) -> String {
        connect.userProperties.last { $0.name == name }?.value ?? ""
    }

    private mutating func refuse(_ reason: MQTTReason, reference: String? = nil) -> [Output] {
        phase = .ended
        return [.toClient(.connack(isSessionPresent: false, reason, reference: reference)), .close]
    }

    private mutating func end(_ reason: MQTTReason, _ text: String, reference: String? = nil) -> [Output] {
        guard phase == .open else { return refuse(reason, reference: reference) }
        phase = .ended
        return [.toClient(.disconnect(reason, text: text, reference: reference)), .close]
    }

    // MARK: Subscriptions

    private var subscriptionsFrame: Mss_Device_V1_Packet {
        .with { $0.subscriptions.suspended = subscriptions.suspended.sorted() }
    }

    /// Whether the client has subscribed to data of a Sync ID or to its recalls.
    func accepts(_ bizType: String) -> Bool { subscriptions.accepts(bizType) }

    /// Suspends these Sync IDs at the gateway. Their data is sent after the client subscribes, from the client's
    /// position.
    mutating func suspend(_ bizTypes: Set<String>) -> [Output] {
        switch subscriptions.suspend(bizTypes) {
        case .unchanged: []
        case .changed: [.toGateway(subscriptionsFrame)]
        case .tooMany(let limit): end(.quotaExceeded, "more than \(limit) Sync IDs without a subscription")
        }
    }

    // MARK: From the gateway

    /// Processes a frame of the gateway.
    mutating func received(_ packet: Mss_Device_V1_Packet, at now: WallTime) -> [Output] {
        self.now = now
        guard phase == .opening || phase == .open else { return [] }
        switch packet.body {
        case .connected(let connected)?: return accepted(connected)
        case .bindResult(let result)? where phase == .opening:
            return result.accepted ? completeOpening() : refuse(.notAuthorized)
        case .push(let push)?: return push.batches.flatMap { deliver($0) } + acknowledge()
        // Number 0 answers the ping with the interval, which the client did not send.
        case .pong(let pong)? where pong.number > 0: return [.toClient(.pingresp)]
        case .close(let close)?:
            let reference = close.address.isEmpty ? nil : close.address
            return end(Self.reason(of: close.code), close.reason, reference: reference)
        default: return []
        }
    }

    private mutating func accepted(_ connected: Mss_Device_V1_Connected) -> [Output] {
        let interval = UInt16(clamping: connected.maxHeartbeatSeconds)
        let asked = connect?.keepAlive ?? 0
        keepAlive = asked == 0 || asked > interval ? interval : asked
        // The gateway waits for 2.5 intervals, MQTT for 1.5 (3.1.2.10).
        let ping = Mss_Device_V1_Packet.with { $0.ping.intervalSeconds = max(1, UInt32(keepAlive) * 3 / 5) }
        let hasBind = (connect?.userName ?? "").split(separator: "/", maxSplits: 1).count == 2
        return [.toGateway(ping)] + (hasBind ? [] : completeOpening())
    }

    private mutating func completeOpening() -> [Output] {
        phase = .open
        let own = keepAlive == connect?.keepAlive ? nil : keepAlive
        var outputs: [Output] = [.toClient(.connack(isSessionPresent: false, .success, keepAlive: own))]
        let packets = early
        early = []
        for packet in packets { outputs += received(packet) }
        return outputs
    }

    /// The MQTT reason of a close code.
    private static func reason(of code: UInt32) -> MQTTReason {
        switch CloseCode(rawValue: code) {
        case .normal?: .success
        case .idle?: .keepAliveTimeout
        case .draining?: .serverShuttingDown
        case .overloaded?: .serverBusy
        case .tooManyFrames?: .connectionRateExceeded
        case .unavailable?: .serverUnavailable
        case .superseded?: .sessionTakenOver
        case .protocolViolation?: .protocolError
        case .registerAnew?: .clientIDNotValid
        case .unknownInstance?: .badUserNameOrPassword
        case .signatureRefused?, .clockOff?: .notAuthorized
        case .disconnected?: .unspecifiedError
        case .surplus?: .useAnotherServer
        case nil: CloseCode.Group(code: code) == .reconnectElsewhere ? .useAnotherServer : .notAuthorized
        }
    }

    // MARK: Data

    private mutating func deliver(_ batch: Mss_Device_V1_ChannelBatch) -> [Output] {
        let key = MQTTChannel.Key(kind: batch.kind, bizType: batch.bizType, bindNumber: batch.bindNumber)
        var outputs: [Output] = []
        if batch.reread != 0 {
            guard acknowledgements.begin(reread: batch.reread) else { return [] }
            for entry in batch.entries { outputs += deliver(entry, of: key, reread: batch.reread) }
            acknowledgements.end(reread: batch.reread)
            return outputs
        }
        for entry in batch.entries where acknowledgements.isNew(entry.oplogID, in: key) {
            outputs += deliver(entry, of: key, reread: 0)
        }
        acknowledgements.addEnd(batch.upto, of: key)
        return outputs
    }

    private mutating func deliver(
        _ entry: Mss_Device_V1_Entry, of key: MQTTChannel.Key, reread: UInt64
    ) -> [Output] {
        let delivery = MQTTDeliveries.Delivery(
            channel: key, oplogID: entry.oplogID, reread: reread, validUntil: entry.validUntilMs)
        let isRecall = entry.recalls != 0
        let topic = isRecall ? MQTTSubscriptions.recallTopic(key.bizType) : key.bizType
        acknowledgements.add(delivery)
        guard let quality = subscriptions.grantedQuality(for: topic) else {
            acknowledgements.finish(delivery)
            return []
        }
        var publish = MQTTPublish(
            topic: topic, payload: isRecall ? ByteBuffer(string: "\(entry.recalls)") : ByteBuffer(bytes: entry.payload),
            packetID: nil)
        publish.isText = isRecall || !entry.binary
        publish.userProperties = [MQTTUserProperty("oplogId", "\(entry.oplogID)")]
        if !entry.thirdMessageID.isEmpty {
            publish.userProperties.append(MQTTUserProperty("thirdMsgId", entry.thirdMessageID))
        }
        if !entry.conversation.isEmpty {
            publish.userProperties.append(MQTTUserProperty("conversation", entry.conversation))
        }
        if entry.attempt > 1 { publish.userProperties.append(MQTTUserProperty("attempt", "\(entry.attempt)")) }
        return send(delivery, publish, quality)
    }

    /// Sends a delivery, unless it is expired.
    private mutating func send(
        _ delivery: MQTTDeliveries.Delivery, _ publish: MQTTPublish, _ quality: UInt8
    ) -> [Output] {
        var publish = publish
        if delivery.validUntil > 0 {
            let left = delivery.validUntil - now.milliseconds
            guard left > 0 else {
                acknowledgements.finish(delivery)
                return []
            }
            publish.expiry = UInt32(clamping: (left + 999) / 1_000)
        }
        if quality == 0 {
            acknowledgements.finish(delivery)
        } else {
            publish.packetID = deliveries.add(delivery)
        }
        return [.toClient(.publish(publish))]
    }

    private mutating func answered(_ packetID: UInt16) -> [Output] {
        if let delivery = deliveries.remove(packetID) { acknowledgements.finish(delivery) }
        // Sent also without content, because the gateway counts the client's frames.
        return [.toGateway(.with { $0.storedAck = acknowledgements.dequeue() ?? .init() })]
    }

    private mutating func acknowledge() -> [Output] {
        guard let acknowledgement = acknowledgements.dequeue() else { return [] }
        return [.toGateway(.with { $0.storedAck = acknowledgement })]
    }
}
