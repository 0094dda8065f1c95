import MQTT
import NIOCore

/// The packets of an MQTT client, byte by byte as in the specifications.
enum MQTTPackets {
    static func text(_ text: String) -> [UInt8] {
        [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 0xFF)] + Array(text.utf8)
    }

    static func packet(_ head: UInt8, _ content: [UInt8]) -> [UInt8] {
        var (rest, length): (Int, [UInt8]) = (content.count, [])
        repeat {
            length.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return [head] + length + content
    }

    /// - Parameter properties: the properties of version 5.
    static func connect(
        _ version: MQTTVersion, client: String = "d", user: String? = "w_app/u", password: String? = "s",
        keepAlive: UInt8 = 30, properties: [UInt8] = [], flags: UInt8 = 0
    ) -> [UInt8] {
        let flags = flags | (user == nil ? 0 : 0x80) | (password == nil ? 0 : 0x40)
        var content = text("MQTT") + [version.rawValue, flags, 0, keepAlive]
        if version == .v5 { content += [UInt8(properties.count)] + properties }
        content += text(client)
        for part in [user, password].compactMap({ $0 }) { content += text(part) }
        return packet(0x10, content)
    }

    static func subscribe(_ version: MQTTVersion, _ filters: [(String, UInt8)], id: UInt8 = 1) -> [UInt8] {
        packet(
            0x82,
            [0, id] + (version == .v5 ? [0] : []) + filters.flatMap { text($0.0) + [$0.1] })
    }

    static func puback(_ id: UInt16) -> [UInt8] { packet(0x40, [UInt8(id >> 8), UInt8(id & 0xFF)]) }

    static let pingreq: [UInt8] = [0xC0, 0]
    static let disconnect: [UInt8] = [0xE0, 0]
}
