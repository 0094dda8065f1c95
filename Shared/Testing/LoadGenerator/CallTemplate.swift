import Credentials
import NIOCore
import ServiceKit
import SyncModel

/// An API call that is built once. For each call only the digits change, so that the generator uses little processor
/// time of the machine that it measures.
struct CallTemplate: Sendable {
    private struct Places {
        var user = 0
        var id = 0
        var stamp = 0
    }

    private static let userDigits = 7
    private let target: String
    private let head: String
    private let body: [UInt8]
    private let items: [Places]
    private let signer: RequestSigner?
    /// The value is nil if calls are signed, because then the headers differ.
    private let unsigned: ByteBuffer?

    /// - Parameter host: value of the `Host` header.
    init(
        _ call: PushStream.Call, _ plan: LoadPlan, host: String
    ) {
        let scenario = plan.scenario
        let name = call == .global ? "global" : call == .single ? "single" : "batch"
        target = "/webapi/sync/\(name)?instanceId=\(plan.instance)"
        var (text, places) = ("", [Places]())
        if case .batch = call { text += #"{"items":["# }
        for item in 0..<call.items {
            var place = Places()
            text += item == 0 ? "{" : ",{"
            text += #""bizType":"\#(call == .global ? scenario.globalBizType : scenario.bizType)","#
            if call != .global {
                text += #""linkToken":"\#(plan.userPrefix)"#
                place.user = text.utf8.count
                text += String(repeating: "0", count: Self.userDigits) + #"","#
            }
            text += #""thirdMsgId":"\#(plan.run)-"#
            place.id = text.utf8.count
            text += String(repeating: "0", count: PushStamp.numberDigits) + #"","payload":""#
            place.stamp = text.utf8.count
            text += PushStamp.placeholder(run: plan.run)
            text += String(repeating: "x", count: scenario.payloadBytes - PushStamp.bytes) + #""}"#
            places.append(place)
        }
        if case .batch = call { text += "]}" }
        body = Array(text.utf8)
        items = places
        head = """
            POST \(target) HTTP/1.1\r
            Host: \(host)\r
            Content-Type: application/json\r
            Content-Encoding: UTF-8\r
            Content-Length: \(body.count)\r

            """
        signer = plan.signer
        unsigned = signer == nil ? ByteBuffer(string: head + "\r\n" + text) : nil
    }

    /// A user id, as `linkToken` and binds name it.
    static func user(_ number: Int, prefix: String) -> String {
        let text = String(number)
        return prefix + String(repeating: "0", count: userDigits - text.utf8.count) + text
    }

    /// The initial bytes of the buffer for `fill`.
    func makeBuffer() -> ByteBuffer { unsigned ?? ByteBuffer() }

    /// Writes the numbers of a call into the buffer.
    ///
    /// - Parameters:
    /// - users: the user of item n.
    /// - first: number of the first push. The numbers of the others follow.
    func fill(_ buffer: inout ByteBuffer, first: Int, due: Int64, user: (Int) -> Int) {
        guard let signer else {
            buffer.moveReaderIndex(to: 0)
            put(first, due, user, into: &buffer, offset: head.utf8.count + 2)
            return
        }
        var content = ByteBuffer(bytes: body)
        put(first, due, user, into: &content, offset: 0)
        let headers = signer.headers(method: "POST", target: target, body: content.readableBytesView, at: .now)
        buffer.clear()
        buffer.writeString(head + headers.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n")
        buffer.writeBuffer(&content)
    }

    private func put(
        _ first: Int, _ due: Int64, _ user: (Int) -> Int, into buffer: inout ByteBuffer, offset: Int
    ) {
        buffer.withUnsafeMutableReadableBytes { bytes in
            for (index, item) in items.enumerated() {
                if item.user > 0 { Self.put(user(index), Self.userDigits, base: 10, bytes, offset + item.user) }
                Self.put(first + index, PushStamp.numberDigits, base: 10, bytes, offset + item.id)
                let stamp = offset + item.stamp
                Self.put(first + index, PushStamp.numberDigits, base: 10, bytes, stamp + PushStamp.numberOffset)
                Self.put(Int(due), PushStamp.dueDigits, base: 16, bytes, stamp + PushStamp.dueOffset)
            }
        }
    }

    private static func put(
        _ value: Int, _ digits: Int, base: Int, _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int
    ) {
        var value = value
        for place in stride(from: offset + digits - 1, through: offset, by: -1) {
            let digit = UInt8(truncatingIfNeeded: value % base)
            bytes[place] = digit < 10 ? 48 + digit : 87 + digit
            value /= base
        }
    }
}
