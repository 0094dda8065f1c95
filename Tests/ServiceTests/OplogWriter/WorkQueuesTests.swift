import AMQP
import BusMessages
import Logging
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore
import Testing

@testable import OplogWriter

/// A store worker that writes works on one store, so a body with commands of several stores is divided.
@Suite("Work queues of the writer") struct WorkQueuesTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private let recorder = BusRecorder()

    private static func delivery(_ channels: [Int64]) -> AMQPDelivery {
        let body = Mss_Bus_V1_AckCommands.body(
            channels.enumerated().map { index, channel in
                .with {
                    $0.correlation = UInt64(index + 1)
                    $0.channelID = channel
                }
            })
        return AMQPDelivery(
            body: body, isRedelivered: true, replyTo: "r", receivedAt: .now, exchange: "", generation: 1,
            deliveryTag: 1)
    }

    /// The tasks that wait in each work queue.
    private func tasks(
        in work: WorkQueues<AcknowledgementHandler>, of handler: AcknowledgementHandler
    ) async -> [[StoreTask<Mss_Bus_V1_AckCommand>]] {
        work.finish()
        var tasks: [[StoreTask<Mss_Bus_V1_AckCommand>]] = []
        for queue in work.queues {
            tasks.append(handler.tasks(of: await queue.dequeue(upTo: 16), now: .now, logger: Self.logger))
        }
        return tasks
    }

    @Test("D2: each command goes to the work queue of its store, in order; the last part acknowledges the body")
    func divided() async {
        let work = WorkQueues<AcknowledgementHandler>(of: StoreLayout(count: 4))
        let handler = AcknowledgementHandler(bus: recorder.makeBus(), stores: StoreLayout(count: 4))
        work.add([Self.delivery([5, 8, 9, 5, 7]), Self.delivery([13])])
        let tasks = await tasks(in: work, of: handler)
        #expect(tasks.map { $0.map { $0.commands.map(\.channelID) } } == [[[8]], [[5, 9, 5], [13]], [], [[7]]])
        for (number, expected) in [(0, 0), (3, 0), (1, 2)] {
            handler.bus.acknowledge(tasks[number])
            #expect(recorder.settlements.count == expected, "after store \(number)")
        }
    }

    @Test("a body that is not readable is rejected once; with one store no body is divided")
    func whole() async {
        let handler = AcknowledgementHandler(bus: recorder.makeBus(), stores: StoreLayout(count: 4))
        let work = WorkQueues<AcknowledgementHandler>(of: StoreLayout(count: 4))
        work.add([
            AMQPDelivery(
                body: [0xff], isRedelivered: false, replyTo: "r", receivedAt: .now, exchange: "", generation: 1,
                deliveryTag: 1)
        ])
        #expect(await tasks(in: work, of: handler).allSatisfy(\.isEmpty))
        #expect(recorder.settlements == [.rejected])
        let single = WorkQueues<AcknowledgementHandler>(of: .single)
        single.add([Self.delivery([5, 8, 9])])
        let tasks = await tasks(in: single, of: AcknowledgementHandler(bus: recorder.makeBus()))
        #expect(tasks.map { $0.map { $0.commands.map(\.channelID) } } == [[[5, 8, 9]]])
    }
}
