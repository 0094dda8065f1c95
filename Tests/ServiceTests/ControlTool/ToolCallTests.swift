import ArgumentParser
import Foundation
import Hummingbird
import Logging
import NIOCore
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import ControlTool

@Suite("H5: mssctl repeats a call whose answer says that a repeat can help") struct ToolCallTests {
    @Test(
        "at most three attempts, and none after a definite answer or a long Retry-After",
        arguments: [
            ([ResultCode.success], "0", 1), ([.argsIsNull], "0", 1), ([.unauthorized], "0", 1),
            ([.unavailable, .success], "0", 2), ([.systemError, .timeout, .duplicatedBizID], "0", 3),
            ([.systemError, .systemError, .systemError, .success], "0", 3), ([.rateLimited, .success], "60", 1),
        ] as [([ResultCode], String, Int)])
    func attempts(codes: [ResultCode], retryAfter: String, calls: Int) async throws {
        let bodies = Mutex<[String]>([])
        let router = Router()
        router.post("/webapi/sync/single") { request, _ in
            let body = String(buffer: try await request.body.collect(upTo: 65_536))
            let index = bodies.withLock { bodies in
                bodies.append(body)
                return bodies.count - 1
            }
            let code = codes[index]
            let text = #"{"success":\#(code.isSuccess),"msg":"\#(code.rawValue)","retryable":\#(code.isRetryable)}"#
            return Response(
                status: .init(code: code.status), headers: [.contentType: "application/json", .retryAfter: retryAfter],
                body: .init(byteBuffer: ByteBuffer(string: text)))
        }
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in listening.yield(channel.localAddress?.port ?? 0) },
            logger: Logger(label: "api") { _ in SwiftLogNoOpLogHandler() })
        let answer = try await whileRunning(application) {
            var iterator = ports.makeAsyncIterator()
            let port = try requireValue(await iterator.next(), "the API's port")
            return try await APIClient.parse(["--api", "http://127.0.0.1:\(port)"])
                .call("sync/single", [("instanceId", "w_app")], body: ["thirdMsgId": "t"])
        }
        let last = codes[calls - 1]
        #expect(String(decoding: answer, as: UTF8.self).contains(#""msg":"\#(last.rawValue)""#))
        #expect(bodies.withLock { $0 } == Array(repeating: #"{"thirdMsgId":"t"}"#, count: calls))
    }
}
