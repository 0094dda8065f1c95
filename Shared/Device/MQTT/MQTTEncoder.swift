package import NIOCore

/// Encodes the server's packets.
package struct MQTTEncoder {
    /// Property identifiers of version 5.
    private enum Property {
        static let payloadFormat: UInt8 = 0x01
        static let expiry: UInt8 = 0x02
        static let serverKeepAlive: UInt8 = 0x13
        static let reference: UInt8 = 0x1C
        static let reasonText: UInt8 = 0x1F
        static let maximumQoS: UInt8 = 0x24
        static let retainAvailable: UInt8 = 0x25
        static let userProperty: UInt8 = 0x26
        static let maximumPacketSize: UInt8 = 0x27
        static let sharedSubscriptionAvailable: UInt8 = 0x2A
    }

    private let version: MQTTVersion
    private let maxBytes: Int

    /// - Parameter maxBytes: maximum packet size for clients, as announced in `CONNACK`.
    package init(version: MQTTVersion, maxBytes: Int) {
        self.version = version
        self.maxBytes = maxBytes
    }

    /// Appends a packet.
    package func encode(_ packet: MQTTServerPacket, into buffer: inout ByteBuffer) {
        switch packet {
        case .connack(let isPresent, let reason, let keepAlive, let reference):
            frame(0x20, into: &buffer) { content in
                content.writeInteger(UInt8(isPresent && reason == .success ? 1 : 0))
                content.writeInteger(version == .v5 ? reason.rawValue : reason.connectReturnCode)
                properties(into: &content) { list in
                    if reason == .success { capabilities(keepAlive, into: &list) }
                    if let reference { text(reference, as: Property.reference, into: &list) }
                }
            }
        case .publish(let publish): encode(publish, into: &buffer)
        case .puback(let packetID, let reason): answer(0x40, packetID, reason, into: &buffer)
        case .pubrec(let packetID, let reason): answer(0x50, packetID, reason, into: &buffer)
        case .pubcomp(let packetID, let reason): answer(0x70, packetID, reason, into: &buffer)
        case .suback(let packetID, let reasons):
            frame(0x90, into: &buffer) { content in
                content.writeInteger(packetID)
                properties(into: &content) { _ in }
                // Version 3.1.1 has one code for all refusals.
                content.writeBytes(reasons.map { version == .v5 ? $0.rawValue : min($0.rawValue, 0x80) })
            }
        case .unsuback(let packetID, let reasons):
            frame(0xB0, into: &buffer) { content in
                content.writeInteger(packetID)
                properties(into: &content) { _ in }
                if version == .v5 { content.writeBytes(reasons.map(\.rawValue)) }
            }
        case .pingresp: frame(0xD0, into: &buffer) { _ in }
        case .disconnect(let reason, let words, let reference):
            guard version == .v5 else { return }
            frame(0xE0, into: &buffer) { content in
                content.writeInteger(reason.rawValue)
                properties(into: &content) { list in
                    if !words.isEmpty { text(words, as: Property.reasonText, into: &list) }
                    if let reference { text(reference, as: Property.reference, into: &list) }
                }
            }
        }
    }

    private func encode(_ publish: MQTTPublish, into buffer: inout ByteBuffer) {
        let head: UInt8 = 0x30 | (publish.isDuplicate ? 0x08 : 0) | (publish.packetID == nil ? 0 : 0x02)
        frame(head, into: &buffer) { content in
            write(publish.topic, into: &content)
            if let packetID = publish.packetID { content.writeInteger(packetID) }
            properties(into: &content) { list in
                if publish.isText {
                    list.writeInteger(Property.payloadFormat)
                    list.writeInteger(UInt8(1))
                }
                if let expiry = publish.expiry {
                    list.writeInteger(Property.expiry)
                    list.writeInteger(expiry)
                }
                for property in publish.userProperties {
                    list.writeInteger(Property.userProperty)
                    write(property.name, into: &list)
                    write(property.value, into: &list)
                }
            }
            content.writeImmutableBuffer(publish.payload)
        }
    }

    /// The properties of `CONNACK`: unsupported features and the requested keep-alive.
    private func capabilities(_ keepAlive: UInt16?, into list: inout ByteBuffer) {
        list.writeInteger(Property.maximumQoS)
        list.writeInteger(UInt8(1))
        list.writeInteger(Property.retainAvailable)
        list.writeInteger(UInt8(0))
        list.writeInteger(Property.maximumPacketSize)
        list.writeInteger(UInt32(maxBytes))
        list.writeInteger(Property.sharedSubscriptionAvailable)
        list.writeInteger(UInt8(0))
        if let keepAlive {
            list.writeInteger(Property.serverKeepAlive)
            list.writeInteger(keepAlive)
        }
    }

    private func answer(_ head: UInt8, _ packetID: UInt16, _ reason: MQTTReason, into buffer: inout ByteBuffer) {
        frame(head, into: &buffer) { content in
            content.writeInteger(packetID)
            if version == .v5, reason != .success { content.writeInteger(reason.rawValue) }
        }
    }

    // MARK: Parts

    private func frame(_ head: UInt8, into buffer: inout ByteBuffer, _ fill: (inout ByteBuffer) -> Void) {
        var content = ByteBuffer()
        fill(&content)
        buffer.writeInteger(head)
        Self.write(number: content.readableBytes, into: &buffer)
        buffer.writeBuffer(&content)
    }

    /// Writes properties, which only version 5 has.
    private func properties(into content: inout ByteBuffer, _ fill: (inout ByteBuffer) -> Void) {
        guard version == .v5 else { return }
        var list = ByteBuffer()
        fill(&list)
        Self.write(number: list.readableBytes, into: &content)
        content.writeBuffer(&list)
    }

    private func text(_ text: String, as property: UInt8, into list: inout ByteBuffer) {
        list.writeInteger(property)
        write(text, into: &list)
    }

    /// Writes a text of at most 65,535 bytes; a longer one is cut between characters.
    private func write(_ text: String, into buffer: inout ByteBuffer) {
        var text = text[...]
        while text.utf8.count > Int(UInt16.max) { text = text.dropLast() }
        buffer.writeInteger(UInt16(text.utf8.count))
        buffer.writeString(String(text))
    }

    private static func write(number: Int, into buffer: inout ByteBuffer) {
        var rest = number
        repeat {
            let digit = UInt8(rest & 0x7F)
            rest >>= 7
            buffer.writeInteger(rest > 0 ? digit | 0x80 : digit)
        } while rest > 0
    }
}
