import NIOCore

/// Reads the fields of a packet.
struct MQTTReader {
    /// The packet that contains properties. It defines which properties are allowed (MQTT 5.0, 2.2.2.2).
    enum Place: UInt16 {
        case connect = 1
        case will = 2
        case publish = 4
        case answer = 8
        case subscribe = 16
        case unsubscribe = 32
        case disconnect = 64
    }

    /// The properties that the server uses.
    struct Properties {
        var receiveMaximum: UInt16?
        var maximumPacketSize: UInt32?
        var userProperties: [MQTTUserProperty] = []
    }

    private enum Form { case byte, uint16, uint32, number, text, binary }

    private static let userProperty: UInt8 = 0x26
    private static let receiveMaximum: UInt8 = 0x21
    private static let maximumPacketSize: UInt8 = 0x27
    /// Form and allowed packets of each property that a client may send.
    private static let known: [UInt8: (form: Form, places: UInt16)] = [
        0x01: (.byte, 2 | 4), 0x02: (.uint32, 2 | 4), 0x03: (.text, 2 | 4), 0x08: (.text, 2 | 4),
        0x09: (.binary, 2 | 4),
        0x0B: (.number, 16), 0x11: (.uint32, 1 | 64), 0x15: (.text, 1), 0x16: (.binary, 1), 0x17: (.byte, 1),
        0x18: (.uint32, 2), 0x19: (.byte, 1), 0x1F: (.text, 8 | 64), 0x21: (.uint16, 1), 0x22: (.uint16, 1),
        0x23: (.uint16, 4), 0x26: (.text, 1 | 2 | 4 | 8 | 16 | 32 | 64), 0x27: (.uint32, 1),
    ]

    private var content: ByteBuffer

    init(_ content: ByteBuffer) { self.content = content }

    var isAtEnd: Bool { content.readableBytes == 0 }

    mutating func skipRest() { content.moveReaderIndex(to: content.writerIndex) }

    mutating func byte() throws(MQTTFault) -> UInt8 { try integer() }

    mutating func uint16() throws(MQTTFault) -> UInt16 { try integer() }

    /// Reads a packet id, which is not 0.
    mutating func packetID() throws(MQTTFault) -> UInt16 {
        let number = try uint16()
        guard number > 0 else { throw .malformedPacket }
        return number
    }

    private mutating func integer<Number: FixedWidthInteger>() throws(MQTTFault) -> Number {
        guard let number = content.readInteger(as: Number.self) else { throw .malformedPacket }
        return number
    }

    /// Reads a variable byte integer of one to four bytes.
    private mutating func number() throws(MQTTFault) -> Int {
        var number = 0
        for digit in 0..<4 {
            let byte = try byte()
            number |= Int(byte & 0x7F) << (7 * digit)
            if byte & 0x80 == 0 { return number }
        }
        throw .malformedPacket
    }

    mutating func binary() throws(MQTTFault) -> [UInt8] {
        guard let bytes = content.readBytes(length: Int(try uint16())) else { throw .malformedPacket }
        return bytes
    }

    /// Reads UTF-8 text without NUL (1.5.4).
    mutating func text() throws(MQTTFault) -> String {
        let bytes = try binary()
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else { throw .malformedPacket }
        return text
    }

    /// Reads properties of version 5. Only user properties may occur more than once.
    mutating func properties(of place: Place) throws(MQTTFault) -> Properties {
        let length = try number()
        guard let slice = content.readSlice(length: length) else { throw .malformedPacket }
        var reader = MQTTReader(slice)
        var (properties, seen) = (Properties(), Set<UInt8>())
        while !reader.isAtEnd {
            let name = try reader.byte()
            guard let (form, places) = Self.known[name], places & place.rawValue != 0 else { throw .malformedPacket }
            guard seen.insert(name).inserted || name == Self.userProperty else { throw .protocolError }
            switch name {
            case Self.userProperty:
                properties.userProperties.append(MQTTUserProperty(try reader.text(), try reader.text()))
            case Self.receiveMaximum: properties.receiveMaximum = try reader.uint16()
            case Self.maximumPacketSize: properties.maximumPacketSize = try reader.integer()
            default: try reader.skip(form)
            }
        }
        return properties
    }

    private mutating func skip(_ form: Form) throws(MQTTFault) {
        switch form {
        case .byte: _ = try byte()
        case .uint16: _ = try uint16()
        case .uint32: let _: UInt32 = try integer()
        case .number: _ = try number()
        case .text: _ = try text()
        case .binary: _ = try binary()
        }
    }
}
