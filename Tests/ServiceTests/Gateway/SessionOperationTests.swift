import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("A session's operations") struct SessionOperationTests {
    private func submit(
        _ number: UInt32, bind: UInt32 = 1, ids: [String] = ["a", "b"], to bench: inout SessionBench
    ) -> [SessionAction] {
        bench.receive {
            $0.submitOperations.number = number
            $0.submitOperations.bindNumber = bind
            $0.submitOperations.operations = ids.map { id in .with { $0.operationID = id } }
        }
    }

    /// The codes of the answer, or nil without an answer.
    private func codes(_ actions: [SessionAction]) -> [UInt32]? {
        for case .answer(let packet) in actions {
            if case .operationsTaken(let reply)? = packet.body { return reply.refusals.map(\.code) }
        }
        return nil
    }

    private func submission(_ actions: [SessionAction]) -> OperationSubmission? {
        for case .submit(let submission) in actions { return submission }
        return nil
    }

    @Test("a frame of the bound user goes to the relay with the user, and the reply to the device")
    func taken() throws {
        var bench = SessionBench()
        bench.open()
        let sent = try #require(submission(submit(1, to: &bench)))
        #expect(sent.userID == UserID("u") && sent.deviceID == DeviceID("d") && sent.sessionID == "session")
        #expect(sent.operations.map(\.id) == ["a", "b"] && sent.number == 1)
        let refusal = Mss_Bus_V1_SubmitReply.with {
            $0.refusals = [
                .with {
                    $0.operationID = "b"
                    $0.code = 400
                }
            ]
            $0.retryAfterMs = 7
        }
        #expect(bench.handle(.operationsAnswered(refusal, number: 2)).isEmpty)
        #expect(codes(bench.handle(.operationsAnswered(refusal, number: 1))) == [400])
        #expect(bench.handle(.operationsAnswered(refusal, number: 1)).isEmpty)
        #expect(submission(submit(2, to: &bench)) != nil)
    }

    @Test("without a reply of the relay all operations are refused with 503 and can be sent again")
    func noAnswer() {
        var bench = SessionBench()
        bench.open()
        _ = submit(1, to: &bench)
        #expect(codes(bench.handle(.operationsAnswered(nil, number: 1))) == [503, 503])
    }

    @Test("a second frame before the answer, and a number that does not rise, close")
    func violations() {
        var bench = SessionBench()
        bench.open()
        _ = submit(1, to: &bench)
        #expect(submit(2, to: &bench).closeCode == .protocolViolation)
        bench = SessionBench()
        bench.open()
        _ = submit(3, to: &bench)
        _ = bench.handle(.operationsAnswered(.init(), number: 3))
        #expect(submit(3, to: &bench).closeCode == .protocolViolation)
    }

    @Test("a frame of no user, another bind, an unregistered bind or an invalid session is refused as a whole")
    func refused() {
        var bench = SessionBench()
        bench.open()
        #expect(codes(submit(1, bind: 2, to: &bench)) == [409, 409])
        _ = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "v"
        }
        #expect(codes(submit(2, bind: 2, to: &bench)) == [409, 409], "its BindResult is not out yet")
        _ = bench.receive { $0.bind.bindNumber = 3 }
        #expect(codes(submit(3, bind: 3, to: &bench)) == [401, 401])

        bench = SessionBench([SessionBench.configuration("B", checks: true)])
        bench.open()
        _ = bench.answer(.invalid)
        #expect(codes(submit(1, to: &bench)) == [401, 401])
    }

    @Test("a reply after another bind is dropped, and the next frame is accepted")
    func anotherBind() {
        var bench = SessionBench()
        bench.open()
        _ = submit(1, to: &bench)
        _ = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "v"
        }
        #expect(bench.handle(.operationsAnswered(.init(), number: 1)).isEmpty)
        #expect(submit(2, bind: 2, to: &bench).closeCode == nil)
    }
}
