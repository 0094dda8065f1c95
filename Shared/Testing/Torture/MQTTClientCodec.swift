import NIOCore

/// A packet of an MQTT 5.0 server, as far as a torture run reads it. This codec is independent of the gateway's codec,
/// which the run tests.
enum MQTTReply: Sendable {
    case connack(reason: UInt8)
    case publish(MQTTData)
    case suback
    case pingresp
    case disconnect(reason: UInt8)
    case other
}

/// One `PUBLISH` packet of a server.
struct MQTTData: Sendable {
    let topic: String
    let payload: String
    /// The value is nil for quality of service 0.
    let packetID: UInt16?
    /// User properties.
    let properties: [String: String]
}

/// A server's bytes are not valid MQTT.
struct MQTTUnreadable: Error {}

/// Decodes a server's bytes into packets.
struct MQTTReplyDecoder: NIOSingleStepByteToMessageDecoder {
    typealias InboundOut = MQTTReply

    private static let userProperty: UInt8 = 0x26
    private static let payloadFormat: UInt8 = 0x01
    private static let expiry: UInt8 = 0x02

    func decode(buffer: inout ByteBuffer) throws -> MQTTReply? {
        var reader = buffer
        guard let head = reader.readInteger(as: UInt8.self), let length = Self.number(&reader),
            var content = reader.readSlice(length: length)
        else { return nil }
        buffer = reader
        switch head >> 4 {
        case 2:
            guard let reason = content.getInteger(at: content.readerIndex + 1, as: UInt8.self) else {
                throw MQTTUnreadable()
            }
            return .connack(reason: reason)
        case 3: return .publish(try Self.publish(head, &content))
        case 9: return .suback
        case 13: return .pingresp
        case 14: return .disconnect(reason: content.readInteger(as: UInt8.self) ?? 0)
        default: return .other
        }
    }

    func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> MQTTReply? { try decode(buffer: &buffer) }

    private static func publish(_ head: UInt8, _ content: inout ByteBuffer) throws -> MQTTData {
        guard let topic = text(&content) else { throw MQTTUnreadable() }
        let packetID = head >> 1 & 3 > 0 ? content.readInteger(as: UInt16.self) : nil
        guard let length = number(&content), var list = content.readSlice(length: length) else {
            throw MQTTUnreadable()
        }
        var properties: [String: String] = [:]
        while let name = list.readInteger(as: UInt8.self) {
            switch name {
            case userProperty:
                guard let key = text(&list), let value = text(&list) else { throw MQTTUnreadable() }
                properties[key] = value
            case payloadFormat: list.moveReaderIndex(forwardBy: 1)
            case expiry: list.moveReaderIndex(forwardBy: 4)
            default: throw MQTTUnreadable()
            }
        }
        return MQTTData(
            topic: topic, payload: String(buffer: content), packetID: packetID, properties: properties)
    }

    private static func text(_ buffer: inout ByteBuffer) -> String? {
        buffer.readInteger(as: UInt16.self).flatMap { buffer.readString(length: Int($0)) }
    }

    /// A variable byte integer. The value is nil if more bytes are needed.
    private static func number(_ buffer: inout ByteBuffer) -> Int? {
        var number = 0
        for digit in 0..<4 {
            guard let byte = buffer.readInteger(as: UInt8.self) else { return nil }
            number |= Int(byte & 0x7F) << (7 * digit)
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }
}

/// The packets of an MQTT 5.0 client, as bytes.
enum MQTTRequest {
    private static let receiveMaximum: UInt8 = 0x21
    private static let keepAliveSeconds: UInt16 = 60

    static let pingreq = ByteBuffer(bytes: [0xC0, 0])
    static let disconnect = ByteBuffer(bytes: [0xE0, 0])

    /// - Parameter window: the client's receive maximum.
    static func connect(client: String, user: String, password: String, window: UInt16) -> ByteBuffer {
        packet(0x10) { content in
            write("MQTT", &content)
            // Version 5; user name, password, clean start.
            content.writeBytes([5, 0xC2])
            content.writeInteger(keepAliveSeconds)
            content.writeBytes([3, receiveMaximum])
            content.writeInteger(window)
            for text in [client, user, password] { write(text, &content) }
        }
    }

    static func subscribe(_ filter: String) -> ByteBuffer {
        packet(0x82) { content in
            content.writeInteger(UInt16(1))
            content.writeInteger(UInt8(0))
            write(filter, &content)
            content.writeInteger(UInt8(1))
        }
    }

    static func puback(_ packetID: UInt16) -> ByteBuffer { packet(0x40) { $0.writeInteger(packetID) } }

    /// A packet of fewer than 16,384 bytes.
    private static func packet(_ head: UInt8, _ fill: (inout ByteBuffer) -> Void) -> ByteBuffer {
        var content = ByteBuffer()
        fill(&content)
        let length = content.readableBytes
        var packet = ByteBuffer(bytes: [head])
        if length > 0x7F {
            packet.writeBytes([UInt8(length & 0x7F) | 0x80, UInt8(length >> 7)])
        } else {
            packet.writeInteger(UInt8(length))
        }
        packet.writeBuffer(&content)
        return packet
    }

    private static func write(_ text: String, _ content: inout ByteBuffer) {
        content.writeInteger(UInt16(text.utf8.count))
        content.writeString(text)
    }
}
