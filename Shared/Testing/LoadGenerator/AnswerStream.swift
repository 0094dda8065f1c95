import NIOCore

/// Reads the API's responses from a connection: only the status, some headers and the code of each item.
struct AnswerStream {
    private var received = ByteBuffer()
    private static let member = Array(#""msg":""#.utf8)
    private static let lengthName = Array("content-length:".utf8)
    private static let connectionName = Array("connection:".utf8)
    private static let retryName = Array("retry-after:".utf8)
    private static let ok = Array("200".utf8)
    /// Statuses that need a `Retry-After` header.
    private static let later = [Array("429".utf8), Array("503".utf8)]
    /// Position of the status, after `HTTP/1.1 `.
    private static let statusPlace = 9..<12

    /// Whether the server closes the connection after the last response.
    private(set) var isLast = false

    /// Appends received bytes.
    ///
    /// - Returns: the codes of the response when it is complete, nil before. A batch has the code of the call first. A
    ///   status other than 200 precedes each code. " without Retry-After" follows if that header is missing.
    mutating func append(_ part: inout ByteBuffer) -> [String]? {
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

    /// Discards an incomplete response.
    mutating func clear() { received.clear() }

    private static func endOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var index = 0
        while index + 3 < bytes.count {
            // The search is for 13 10 13 10. The fourth byte decides how far the search can advance.
            if bytes[index + 3] == 10, bytes[index + 2] == 13, bytes[index + 1] == 10, bytes[index] == 13 {
                return index + 4
            }
            index += bytes[index + 3] == 10 || bytes[index + 3] == 13 ? 1 : 4
        }
        return nil
    }

    /// The value of a header field. `name` is in lower case and ends with the colon.
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

    /// Within a JSON text a backslash precedes each quotation mark, so this member matches nowhere else.
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
