import AMQP
import BusMessages
import Logging
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import Testing

@testable import OplogWriter

/// After the deadline the caller has an error, so the command must have no effect (H1).
@Suite("H1: commands after their deadline") struct CommandDeadlineTests {
    private static let noon: Int64 = 1_800_000_000_000
    private static let now = ContinuousClock.now
    private static let caller = "caller"

    private let recorder = BusRecorder()
    private let bus: MessageBus

    /// A writer that has just received the database time. Its own clock is an hour behind.
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

    /// Commands with these deadlines, numbered from 1. A nil value means: no deadline.
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

    /// The numbers of the commands that a store worker executes.
    private func carriedOut<Work: CommandHandler>(_ delivery: AMQPDelivery, by work: Work) -> [UInt64] {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return work.tasks(of: [CommandBody(delivery)], now: Self.now, logger: logger).flatMap {
            $0.commands.map(\.correlation)
        }
    }

    private func carriedOut(_ delivery: AMQPDelivery) -> [UInt64] {
        carriedOut(delivery, by: AcknowledgementHandler(bus: bus))
    }

    @Test("a command after its deadline by the database's clock has no effect; others of its body do")
    func late() {
        let body = Self.acks([Self.noon - 100, nil, Self.noon + 100, Self.noon - 1_000])
        #expect(carriedOut(Self.delivery(body)) == [2, 3])
        let replies = recorder.takeReplies(to: Self.caller)
        #expect(replies.map(\.correlation) == [1, 4])
        #expect(replies.allSatisfy { $0.failure.notAttempted && $0.databaseTimeMs >= Self.noon })
        #expect(recorder.settlements.isEmpty, "the lane settles the body with the rest")
    }

    @Test("a body without remaining commands is acknowledged") func allLate() {
        #expect(carriedOut(Self.delivery(Self.acks([Self.noon - 100, Self.noon - 200]))).isEmpty)
        #expect(recorder.takeReplies(to: Self.caller).map(\.correlation) == [1, 2])
        #expect(recorder.settlements == [.accepted])
    }

    @Test("a command without a deadline is late after its caller's time limit")
    func withoutDeadline() {
        let wait = AcknowledgementHandler.queue.timeout + .milliseconds(100)
        let body = Self.acks([nil, Self.noon + 100])
        #expect(
            carriedOut(Self.delivery(body, waited: AcknowledgementHandler.queue.timeout - .milliseconds(100))) == [
                1, 2,
            ])
        #expect(carriedOut(Self.delivery(body, waited: wait)) == [2])
        #expect(recorder.takeReplies(to: Self.caller).map(\.correlation) == [1])
    }

    @Test("while the database time is unknown, the waiting time decides") func unknownTime() {
        let work = AcknowledgementHandler(bus: BusRecorder().makeBus())
        let body = Self.acks([Self.noon - 100])
        #expect(carriedOut(Self.delivery(body), by: work) == [1])
        #expect(carriedOut(Self.delivery(body, waited: .seconds(60)), by: work).isEmpty)
    }

    @Test("a redelivered append is checked although late: it can be committed; one of a session is refused")
    func redelivered() {
        #expect(carriedOut(Self.delivery(Self.acks([Self.noon - 100]), isRedelivered: true)) == [1])
        let session = Self.delivery(Self.sessions(Self.noon - 100), isRedelivered: true)
        #expect(carriedOut(session, by: SessionHandler(bus: bus)).isEmpty)
        #expect(recorder.takeReplies(to: Self.caller).map(\.correlation) == [1])
        let inTime = Self.delivery(Self.sessions(Self.noon + 100), isRedelivered: true)
        #expect(carriedOut(inTime, by: SessionHandler(bus: bus)) == [1])
    }
}
