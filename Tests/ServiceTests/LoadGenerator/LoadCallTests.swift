import DeliveryHistory
import Foundation
import NIOCore
import TestSupport
import Testing

@testable import LoadGenerator

@Suite("A load run's calls and answers") struct LoadCallTests {
    private struct Item: Decodable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
        let payload: String
    }

    private struct Batch: Decodable { let items: [Item] }

    private func call(_ call: PushStream.Call, payload: Int = 60) throws -> (head: String, items: [Item]) {
        var scenario = LoadScenario.single(.rate(perSecond: 1, seconds: 1))
        scenario.payloadBytes = payload
        let plan = LoadPlan(scenario: scenario, part: LoadPlan.Part(), instance: "demo_app", run: "r123456")
        let template = CallTemplate(call, plan, host: "localhost")
        var buffer = template.makeBuffer()
        // The second call shows that no data of the first one remains.
        template.fill(&buffer, first: 9_999_999_999 - 10, due: .max) { _ in 9_999_999 }
        template.fill(&buffer, first: 40, due: 0xab_cdef) { 7 + $0 }
        let parts = String(buffer: buffer).components(separatedBy: "\r\n\r\n")
        let body = Data(parts[1].utf8)
        #expect(parts[0].contains("Content-Length: \(body.count)"))
        if case .batch = call { return (parts[0], try JSONDecoder().decode(Batch.self, from: body).items) }
        return (parts[0], [try JSONDecoder().decode(Item.self, from: body)])
    }

    @Test("a template is the call with its numbers in place") func single() throws {
        let (head, items) = try call(.single)
        #expect(head.hasPrefix("POST /webapi/sync/single?instanceId=demo_app HTTP/1.1\r\nHost: localhost\r\n"))
        #expect(items[0].bizType == "UCHAT" && items[0].linkToken == "load-r123456-0000007")
        #expect(items[0].thirdMsgId == "r123456-0000000040" && items[0].payload.utf8.count == 60)
        let run = Array("r123456".utf8)
        let stamp = Array(items[0].payload.utf8).withUnsafeBytes { PushStamp($0, run: run) }
        #expect(stamp?.number == 40 && stamp?.due == 0xab_cdef)
    }

    @Test("a batch has its items in order, a global push no user") func others() throws {
        let (head, items) = try call(.batch(items: 3), payload: PushStamp.bytes)
        #expect(head.hasPrefix("POST /webapi/sync/batch?"))
        #expect(items.map(\.linkToken) == (7...9).map { "load-r123456-000000\($0)" })
        #expect(items.map(\.thirdMsgId) == (40...42).map { "r123456-00000000\($0)" })
        let (globalHead, global) = try call(.global)
        #expect(globalHead.hasPrefix("POST /webapi/sync/global?"))
        #expect(global[0].linkToken == nil && global[0].bizType == "GLOBAL-NEWS")
    }

    @Test("payloads of other runs, and of none, have no stamp") func foreign() {
        let run = Array("r123456".utf8)
        for text in ["", "hello", PushStamp.placeholder(run: "r123457"), "r123456,000000000x,0000000000000000"] {
            #expect(Array(text.utf8).withUnsafeBytes { PushStamp($0, run: run) } == nil, "\(text)")
        }
        #expect(PushStamp.makeRun().utf8.count == PushStamp.runBytes)
    }

    @Test("answers are read wherever they are cut", arguments: 1...50) func answers(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var stream = AnswerStream()
        let bodies = [
            (#"{"success":true,"msg":"SUCCESS","oplogId":1,"requestId":"x"}"#, ["SUCCESS"]),
            (
                #"{"msg":"SUCCESS","results":[{"msg":"NOT_ONLINE"},{"success":false,"msg":"X","detail":"\"msg\":"}]}"#,
                ["SUCCESS", "NOT_ONLINE", "X"]
            ), (#"{"other":1}"#, []),
        ]
        for (body, codes) in bodies {
            var bytes = ByteBuffer(
                string: "HTTP/1.1 200 OK\r\nX-A: b\r\ncontent-LENGTH: \(body.utf8.count)\r\nX: y\r\n\r\n\(body)")
            var found: [String]?
            while bytes.readableBytes > 0 {
                #expect(found == nil, "seed \(seed): whole too early")
                let length = Int.random(in: 1...min(70, bytes.readableBytes), using: &random)
                let cut = bytes.readSlice(length: length)
                var part = try #require(cut)
                found = stream.append(&part)
            }
            #expect(found == codes, "seed \(seed)")
        }
    }

    @Test("an answer that is not 200 names its status, and one that ends the connection says so")
    func lastAnswer() {
        var stream = AnswerStream()
        func errors(of status: String, _ code: String, _ fields: String) -> [String]? {
            let body = #"{"success":false,"msg":"\#(code)"}"#
            var bytes = ByteBuffer(
                string: "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            return stream.append(&bytes)
        }
        #expect(errors(of: "200 OK", "SYSTEM_ERROR", "") == ["SYSTEM_ERROR"] && !stream.isLast)
        let unavailable = errors(
            of: "503 Service Unavailable", "UNAVAILABLE", "Connection: close\r\nRetry-After: 1\r\n")
        #expect(unavailable == ["503 UNAVAILABLE"] && stream.isLast)
        #expect(errors(of: "503 Service Unavailable", "UNAVAILABLE", "") == ["503 UNAVAILABLE without Retry-After"])
        #expect(errors(of: "404 Not Found", "NOT_FOUND", "") == ["404 NOT_FOUND"])
        #expect(errors(of: "200 OK", "SYSTEM_ERROR", "X-Connection: close\r\n") == ["SYSTEM_ERROR"] && !stream.isLast)
    }
}
