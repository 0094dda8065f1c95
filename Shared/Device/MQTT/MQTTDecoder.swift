package import NIOCore

/// Decodes a client's packets. Malformed packets end the connection with an `MQTTFault`.
package struct MQTTDecoder: NIOSingleStepByteToMessageDecoder {
    package typealias InboundOut = MQTTClientPacket

    private let maxBytes: Int
    /// The version in `CONNECT`; nil before it.
    private var version: MQTTVersion?

    /// - Parameter maxBytes: maximum size of a packet after its fixed header; larger packets end the connection.
    package init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// The next complete packet; nil if more bytes are needed.
    ///
    /// - Throws: `MQTTFault`; the decoder is not usable after it.
    package mutating func decode(buffer: inout ByteBuffer) throws -> MQTTClientPacket? { try next(from: &buffer) }

    /// Decodes at the end of the stream; an incomplete packet is dropped.
    package mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> MQTTClientPacket? {
        try next(from: &buffer)
    }

    private mutating func next(from buffer: inout ByteBuffer) throws(MQTTFault) -> MQTTClientPacket? {
        guard let head = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return nil }
        var (length, digits, isWhole) = (0, 0, false)
        while !isWhole {
            guard let digit = buffer.getInteger(at: buffer.readerIndex + 1 + digits, as: UInt8.self) else { return nil }
            length |= Int(digit & 0x7F) << (7 * digits)
            digits += 1
            isWhole = digit & 0x80 == 0
            if !isWhole, digits == 4 { throw .malformedPacket }
        }
        // Checked before the whole packet has arrived.
        guard length <= maxBytes else { throw .packetTooLarge }
        guard version != nil || head == 0x10 else { throw .protocolError }
        guard let content = buffer.getSlice(at: buffer.readerIndex + 1 + digits, length: length) else { return nil }
        buffer.moveReaderIndex(forwardBy: 1 + digits + length)
        var reader = MQTTReader(content)
        let packet = try read(head, &reader)
        guard reader.isAtEnd else { throw .malformedPacket }
        return packet
    }

    private mutating func read(_ head: UInt8, _ reader: inout MQTTReader) throws(MQTTFault) -> MQTTClientPacket {
        let flags = head & 0x0F
        guard let version else { return .connect(try readConnect(&reader)) }
        switch head >> 4 {
        // A second CONNECT.
        case 1: throw .protocolError
        case 3: return .publish(try readPublish(flags, version, &reader))
        case 4:
            guard flags == 0 else { throw .malformedPacket }
            return .puback(packetID: try readAnswer(version, &reader))
        case 5, 7:
            // Replies to QoS 2, which this server does not use.
            throw .protocolError
        case 6:
            guard flags == 2 else { throw .malformedPacket }
            return .pubrel(packetID: try readAnswer(version, &reader))
        case 8:
            guard flags == 2 else { throw .malformedPacket }
            return try readSubscribe(version, &reader)
        case 10:
            guard flags == 2 else { throw .malformedPacket }
            return try readUnsubscribe(version, &reader)
        case 12:
            guard flags == 0 else { throw .malformedPacket }
            return .pingreq
        case 14:
            guard flags == 0 else { throw .malformedPacket }
            if version == .v5, !reader.isAtEnd {
                _ = try reader.byte()
                if !reader.isAtEnd { _ = try reader.properties(of: .disconnect) }
            }
            return .disconnect
        case 15 where version == .v5:
            guard flags == 0 else { throw .malformedPacket }
            reader.skipRest()
            return .auth
        default: throw .malformedPacket
        }
    }

    private mutating func readConnect(_ reader: inout MQTTReader) throws(MQTTFault) -> MQTTConnect {
        guard try reader.text() == "MQTT" else { throw .unsupportedVersion }
        guard let spoken = MQTTVersion(rawValue: try reader.byte()) else { throw .unsupportedVersion }
        let flags = try reader.byte()
        let (hasWill, willQoS) = (flags & 0x04 != 0, flags >> 3 & 0x03)
        let (hasUserName, hasPassword) = (flags & 0x80 != 0, flags & 0x40 != 0)
        guard flags & 0x01 == 0, willQoS < 3, hasWill || flags & 0x38 == 0 else { throw .malformedPacket }
        guard spoken == .v5 || hasUserName || !hasPassword else { throw .malformedPacket }
        var connect = MQTTConnect(
            version: spoken, isCleanStart: flags & 0x02 != 0, keepAlive: try reader.uint16(), clientID: "")
        if spoken == .v5 {
            let properties = try reader.properties(of: .connect)
            if let maximum = properties.receiveMaximum {
                guard maximum > 0 else { throw .protocolError }
                connect.receiveMaximum = maximum
            }
            if let maximum = properties.maximumPacketSize {
                guard maximum > 0 else { throw .protocolError }
                connect.maximumPacketSize = maximum
            }
            connect.userProperties = properties.userProperties
        }
        connect.clientID = try reader.text()
        if hasWill {
            if spoken == .v5 { _ = try reader.properties(of: .will) }
            _ = try reader.text()
            _ = try reader.binary()
        }
        if hasUserName { connect.userName = try reader.text() }
        if hasPassword { connect.password = try reader.binary() }
        version = spoken
        return connect
    }

    private func readPublish(
        _ flags: UInt8, _ version: MQTTVersion, _ reader: inout MQTTReader
    ) throws(MQTTFault) -> MQTTReceivedPublish {
        let qualityOfService = flags >> 1 & 0x03
        guard qualityOfService < 3, qualityOfService > 0 || flags & 0x08 == 0 else { throw .malformedPacket }
        let topic = try reader.text()
        let packetID = qualityOfService > 0 ? try reader.packetID() : 0
        if version == .v5 { _ = try reader.properties(of: .publish) }
        reader.skipRest()
        return MQTTReceivedPublish(topic: topic, qualityOfService: qualityOfService, packetID: packetID)
    }

    /// Reads a packet id, in version 5 followed by an optional reason code and properties.
    private func readAnswer(_ version: MQTTVersion, _ reader: inout MQTTReader) throws(MQTTFault) -> UInt16 {
        let packetID = try reader.packetID()
        if version == .v5, !reader.isAtEnd {
            _ = try reader.byte()
            if !reader.isAtEnd { _ = try reader.properties(of: .answer) }
        }
        return packetID
    }

    private func readSubscribe(
        _ version: MQTTVersion, _ reader: inout MQTTReader
    ) throws(MQTTFault) -> MQTTClientPacket {
        let packetID = try reader.packetID()
        if version == .v5 { _ = try reader.properties(of: .subscribe) }
        var subscriptions: [MQTTSubscription] = []
        repeat {
            let filter = try reader.text()
            let options = try reader.byte()
            let isSound =
                options & 0x03 < 3 && (version == .v5 ? options & 0xC0 == 0 && options & 0x30 != 0x30 : options < 3)
            guard isSound else { throw version == .v5 ? .protocolError : .malformedPacket }
            subscriptions.append(MQTTSubscription(filter: filter, qualityOfService: options & 0x03))
        } while !reader.isAtEnd
        return .subscribe(packetID: packetID, subscriptions)
    }

    private func readUnsubscribe(
        _ version: MQTTVersion, _ reader: inout MQTTReader
    ) throws(MQTTFault) -> MQTTClientPacket {
        let packetID = try reader.packetID()
        if version == .v5 { _ = try reader.properties(of: .unsubscribe) }
        var filters: [String] = []
        repeat { filters.append(try reader.text()) } while !reader.isAtEnd
        return .unsubscribe(packetID: packetID, filters: filters)
    }
}

/// Why a connection is ended. Raw values are reason codes of MQTT 5.0, 2.4.
package enum MQTTFault: UInt8, Error, Hashable, Sendable {
    case malformedPacket = 0x81
    case protocolError = 0x82
    case unsupportedVersion = 0x84
    case packetTooLarge = 0x95
}
