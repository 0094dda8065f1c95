import NIOCore

/// Reads the API's answers off a connection: the code of each item, without making anything of the rest.
struct AnswerStream {
    private var received = ByteBuffer()
    private static let member = Array(#""msg":""#.utf8)
    private static let lengthName = Array("content-length:".utf8)
    private static let connectionName = Array("connection:".utf8)
    private static let retryName = Array("retry-after:".utf8)
    private static let ok = Array("200".utf8)
    /// Statuses that say when to come again.
    private static let later = [Array("429".utf8), Array("503".utf8)]
    /// Where the status stands, behind `HTTP/1.1 `.
    private static let statusPlace = 9..<12

    /// Whether the server ends the connection with the answer that was taken last.
    private(set) var isLast = false

    /// Takes the next bytes.
    ///
    /// - Returns: the codes of the answer when it is whole, nil until then. A batch has the code of the call itself
    ///   first. Another status than 200 stands before each; behind it, that it should say when to come again and does
    ///   not.
    mutating func take(_ part: inout ByteBuffer) -> [String]? {
        received.writeBuffer(&part)
        let codes = received.withUnsafeReadableBytes { bytes -> [String]? in
            guard let bodyStart = Self.endOfHead(bytes) else { return nil }
            let head = UnsafeRawBufferPointer(rebasing: bytes[..<bodyStart])
            let length = Self.field(Self.lengthName, in: head).flatMap { Int($0) } ?? 0
            guard bytes.count >= bodyStart + length else { return nil }
            isLast = Self.field(Self.connectionName, in: head) == "close"
            let codes = Self.codes(UnsafeRawBufferPointer(rebasing: bytes[bodyStart...]))
            let status = head[Self.statusPlace]
            guard !status.elementsEqual(Self.ok) else { return codes }
            let lacksTime =
                Self.later.contains { status.elementsEqual($0) } && Self.field(Self.retryName, in: head) == nil
            let end = lacksTime ? " without Retry-After" : ""
            return codes.map { String(decoding: status, as: UTF8.self) + " " + $0 + end }
        }
        if codes != nil { received.clear() }
        return codes
    }

    /// Forgets what came of an answer that will not be whole.
    mutating func clear() { received.clear() }

    private static func endOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var index = 0
        while index + 3 < bytes.count {
            // 13 10 13 10; the third byte decides how far the next look can be.
            if bytes[index + 3] == 10, bytes[index + 2] == 13, bytes[index + 1] == 10, bytes[index] == 13 {
                return index + 4
            }
            index += bytes[index + 3] == 10 || bytes[index + 3] == 13 ? 1 : 4
        }
        return nil
    }

    /// The value of a field; its name is given in small letters with the colon.
    private static func field(_ name: [UInt8], in head: UnsafeRawBufferPointer) -> String? {
        var start = 0
        while start + name.count < head.count {
            var end = start
            while end < head.count, head[end] != 10 { end += 1 }
            if end - start > name.count, (0..<name.count).allSatisfy({ head[start + $0] | 0x20 == name[$0] | 0x20 }) {
                let value = head[(start + name.count)..<end].drop { $0 == 32 }.prefix { $0 > 32 }
                return String(decoding: value, as: UTF8.self)
            }
            start = end + 1
        }
        return nil
    }

    /// A quotation mark within a text has a backslash before it, so this member is nowhere else.
    private static func codes(_ body: UnsafeRawBufferPointer) -> [String] {
        var codes: [String] = []
        var index = 0
        while index + member.count < body.count {
            guard body[index] == member[0], body[index + 1] == member[1],
                (2..<member.count).allSatisfy({ body[index + $0] == member[$0] })
            else {
                index += 1
                continue
            }
            let start = index + member.count
            var end = start
            while end < body.count, body[end] != UInt8(ascii: "\"") { end += 1 }
            codes.append(String(decoding: body[start..<end], as: UTF8.self))
            index = end
        }
        return codes
    }
}
