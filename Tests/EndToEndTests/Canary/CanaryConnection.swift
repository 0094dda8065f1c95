import DeviceProtocol
import SwiftProtobuf
import Synchronization

/// One connection of the canary run and its current bind.
struct CanaryConnection: Sendable {
    /// A judge that the connection's event loop and the run share.
    final class Judge: Sendable {
        private let judge: Mutex<CanaryJudge>
        init(_ judge: CanaryJudge) { self.judge = Mutex(judge) }
        func ask<Result: Sendable>(_ question: (inout CanaryJudge) -> Result) -> Result {
            judge.withLock { question(&$0) }
        }
    }

    let instance: String
    let device: String
    let connection: RawDevice
    let judge: Judge
    var bindNumber: UInt32 = 0
    var user = ""
    var session = ""

    /// Whether the gateway has answered the newest bind of this connection.
    var isAnswered: Bool { judge.ask { $0.bindNumber } == bindNumber }

    /// After the next pong, no data of these Sync IDs may arrive on this bind.
    func drawLine(_ bizTypes: Set<String>, _ why: String, number: UInt64) async {
        judge.ask { $0.draw(.init(bindNumber: bindNumber, bizTypes: bizTypes, why: why), behind: number) }
        try? await connection.send(.with { $0.ping.number = number })
    }
}
