import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import OplogWriter

/// A caller has got an error by then, so the command must have no effect (finding A13).
@Suite("H1: commands that come after their deadline") struct CommandDeadlineTests {
    private static let noon: Int64 = 1_800_000_000_000
    private static let now = ContinuousClock.now
    private static let caller = "caller"

    private let recorder = BusRecorder()
    private let bus: MessageBus

    /// A writer that learned the database's time just now. Its own clock is an hour behind.
    init() {
        let clock = ProcessClock(now: { Self.now }, wallTime: { WallTime(milliseconds: Self.noon - 3_600_000) })
        bus = recorder.makeBus(clock: clock)
        bus.databaseTime.observe(WallTime(milliseconds: Self.noon), askedAt: Self.now)
    }

    private static func delivery(
        _ body: [UInt8], isRedelivered: Bool = false, waited: Duration = .zero
    ) -> AMQPDelivery {
        AMQPDelivery(
            body: body, isRedelivered: isRedelivered, replyTo: caller, receivedAt: now - waited, exchange: "",
            generation: 1, deliveryTag: 1)
    }

    /// Commands with these deadlines, numbered from 1; nil: without a deadline.
    private static func acks(_ deadlines: [Int64?]) -> [UInt8] {
        Mss_Bus_V1_AckCommands.body(
            deadlines.enumerated().map { index, deadline in
                .with {
                    $0.correlation = UInt64(index + 1)
                    $0.deadlineMs = deadline ?? 0
                }
            })
    }

    private static func sessions(_ deadline: Int64) -> [UInt8] {
        Mss_Bus_V1_SessionCommands.body([
            .with {
                $0.correlation = 1
                $0.deadlineMs = deadline
            }
        ])
    }

    /// The numbers of the commands that a lane carries out.
    private func carriedOut<Work: LaneWork>(_ delivery: AMQPDelivery, by work: Work) -> [UInt64] {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return work.tasks(of: [delivery], now: Self.now, logger: logger).flatMap { $0.commands.map(\.correlation) }
    }

    private func carriedOut(_ delivery: AMQPDelivery) -> [UInt64] { carriedOut(delivery, by: AckWork(bus: bus)) }

    @Test("one past its deadline by the database's clock is refused without effect, others of its body are not")
    func late() {
        let body = Self.acks([Self.noon - 100, nil, Self.noon + 100, Self.noon - 1_000])
        #expect(carriedOut(Self.delivery(body)) == [2, 3])
        let replies = recorder.takeReplies(to: Self.caller)
        #expect(replies.map(\.correlation) == [1, 4])
        #expect(replies.allSatisfy { $0.failure.notAttempted && $0.databaseTimeMs >= Self.noon })
        #expect(recorder.settlements.isEmpty, "the lane settles the body with the rest")
    }

    @Test("a body of which nothing is left is settled") func allLate() {
        #expect(carriedOut(Self.delivery(Self.acks([Self.noon - 100, Self.noon - 200]))).isEmpty)
        #expect(recorder.takeReplies(to: Self.caller).map(\.correlation) == [1, 2])
        #expect(recorder.settlements == [.accepted])
    }

    @Test("a command without a deadline is late once it has waited longer than its caller does")
    func withoutDeadline() {
        let wait = AckWork.queue.timeout + .milliseconds(100)
        let body = Self.acks([nil, Self.noon + 100])
        #expect(carriedOut(Self.delivery(body, waited: AckWork.queue.timeout - .milliseconds(100))) == [1, 2])
        #expect(carriedOut(Self.delivery(body, waited: wait)) == [2])
        #expect(recorder.takeReplies(to: Self.caller).map(\.correlation) == [1])
    }

    @Test("while the database's time is unknown the wait decides") func unknownTime() {
        let work = AckWork(bus: BusRecorder().makeBus())
        let body = Self.acks([Self.noon - 100])
        #expect(carriedOut(Self.delivery(body), by: work) == [1])
        #expect(carriedOut(Self.delivery(body, waited: .seconds(60)), by: work).isEmpty)
    }

    @Test("one that comes again is looked at however late: it may have been committed; one of a session is refused")
    func redelivered() {
        #expect(carriedOut(Self.delivery(Self.acks([Self.noon - 100]), isRedelivered: true)) == [1])
        let session = Self.delivery(Self.sessions(Self.noon - 100), isRedelivered: true)
        #expect(carriedOut(session, by: SessionWork(bus: bus)).isEmpty)
        #expect(recorder.takeReplies(to: Self.caller).map(\.correlation) == [1])
        let inTime = Self.delivery(Self.sessions(Self.noon + 100), isRedelivered: true)
        #expect(carriedOut(inTime, by: SessionWork(bus: bus)) == [1])
    }
}
