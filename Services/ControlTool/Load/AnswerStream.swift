import NIOCore

/// Reads the API's answers off a connection: the code of each item, without making anything of the rest.
struct AnswerStream {
    private var received = ByteBuffer()
    private static let member = Array(#""msg":""#.utf8)
    private static let lengthName = Array("content-length:".utf8)

    /// Takes the next bytes.
    ///
    /// - Returns: the codes of the answer when it is whole, nil until then. A batch has the code of the call itself
    ///   first.
    mutating func take(_ part: inout ByteBuffer) -> [String]? {
        received.writeBuffer(&part)
        let codes = received.withUnsafeReadableBytes { bytes -> [String]? in
            guard let bodyStart = Self.endOfHead(bytes) else { return nil }
            guard bytes.count >= bodyStart + Self.length(UnsafeRawBufferPointer(rebasing: bytes[..<bodyStart])) else {
                return nil
            }
            return Self.codes(UnsafeRawBufferPointer(rebasing: bytes[bodyStart...]))
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

    private static func length(_ head: UnsafeRawBufferPointer) -> Int {
        var start = 0
        while start + lengthName.count < head.count {
            var end = start
            while end < head.count, head[end] != 10 { end += 1 }
            if end - start > lengthName.count,
                (0..<lengthName.count).allSatisfy({ head[start + $0] | 0x20 == lengthName[$0] | 0x20 })
            {
                var length = 0
                for byte in head[(start + lengthName.count)..<end] where byte >= 48 && byte <= 57 {
                    length = length * 10 + Int(byte) - 48
                }
                return length
            }
            start = end + 1
        }
        return 0
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
