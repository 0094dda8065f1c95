import AMQP
import BusMessages
import ConnectionThread
import Foundation
import Logging
import Metrics
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Takes frames of operations off the bus and answers once they are stored: whatever waits goes into one transaction.
actor SubmitLane {
    /// Frames of one transaction.
    private static let groupBodies = 32
    private static let limit = Duration.seconds(5)

    /// A frame on its way through a group.
    private struct Frame {
        let command: Mss_Bus_V1_SubmitCommand
        let replyTo: String
        let checked: SubmitIntake.Checked
    }

    private let thread = ConnectionThread(name: "submit")
    private let connection: PostgresConnection
    private let queue: WorkQueue<AMQPDelivery>
    private let bus: MessageBus
    private let intake: SubmitIntake
    private let isLoaded: @Sendable () -> Bool
    /// Told which instances have something to do.
    private let taken: @Sendable (Set<InstanceID>, _ hasKnown: Bool) -> Void
    private let logger: Logger
    private let takenCount = Counter(label: "mss_relay_operations_taken")
    private let knownCount = Counter(label: "mss_relay_operations_repeated")
    private let refusedCount = Counter(label: "mss_relay_operations_refused")

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        configuration: PostgresConfiguration, queue: WorkQueue<AMQPDelivery>, bus: MessageBus, intake: SubmitIntake,
        isLoaded: @escaping @Sendable () -> Bool,
        taken: @escaping @Sendable (Set<InstanceID>, _ hasKnown: Bool) -> Void, logger: Logger
    ) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.queue = queue
        self.bus = bus
        self.intake = intake
        self.isLoaded = isLoaded
        self.taken = taken
        self.logger = logger
    }

    /// Works until the queue is finished and empty.
    func run() async {
        while true {
            let deliveries = await queue.take(upTo: Self.groupBodies)
            if deliveries.isEmpty { break }
            let deadline = deliveries.map { $0.receivedAt + CommandQueue.submit.timeout }.min() ?? .now
            let replies = take(deliveries.flatMap(frames), until: deadline)
            bus.together {
                for (key, reply) in replies { bus.reply(reply, to: key, through: CommandQueue.submit.answers) }
            }
            bus.settle(deliveries, as: .accepted)
        }
        connection.close()
        thread.stop()
    }

    private func frames(of delivery: AMQPDelivery) -> [Frame] {
        guard let commands = Mss_Bus_V1_SubmitCommands.elements(of: delivery.body), let replyTo = delivery.replyTo
        else {
            logger.error("a command body could not be read", metadata: ["bytes": "\(delivery.body.count)"])
            return []
        }
        // Nobody waits for the answer to an old one; its device sends it again.
        guard delivery.receivedAt + CommandQueue.submit.timeout > .now else { return [] }
        guard isLoaded() else {
            for command in commands {
                let failure = Self.failure(of: command, "the relay has just started")
                bus.reply(failure, to: replyTo, through: CommandQueue.submit.answers)
            }
            return []
        }
        return commands.map { Frame(command: $0, replyTo: replyTo, checked: intake.check($0)) }
    }

    /// Stores frames, all in one transaction; where the database cannot take one, the others all the same. A device's
    /// frames are stored in their order.
    ///
    /// - Returns: the answers, each with where it goes.
    private func take(
        _ frames: [Frame], until deadline: ContinuousClock.Instant
    ) -> [(String, Mss_Bus_V1_Reply)] {
        var replies: [(String, Mss_Bus_V1_Reply)] = []
        var plan = BatchPlan(frames) { [$0.command.instanceID, $0.command.deviceID] }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                do throws(PostgresError) {
                    try store(part.flatMap(\.checked.takings))
                    replies += part.map(answer)
                    plan.stored()
                } catch {
                    plan.failed(with: error, mayRepeat: .now < deadline)
                }
            case .refuse(let frame, let error): replies += fail([frame], with: error)
            case .fail(let part, let error): replies += fail(part, with: error)
            }
        }
        return replies
    }

    private func store(_ takings: [DeviceOperationStore.Taking]) throws(PostgresError) {
        guard !takings.isEmpty else { return }
        let stored = try connection.run(
            DeviceOperationStore.take(takings, group: RandomName.make()), within: Self.limit)
        takenCount.increment(by: stored.taken)
        knownCount.increment(by: stored.known)
        taken(Set(takings.map(\.instanceID)), stored.known > 0)
    }

    private func fail(_ frames: [Frame], with error: PostgresError) -> [(String, Mss_Bus_V1_Reply)] {
        logger.warning("operations were not taken", metadata: ["error": "\(error.message)"])
        return frames.map { ($0.replyTo, Self.failure(of: $0.command, error.message)) }
    }

    private func answer(_ frame: Frame) -> (String, Mss_Bus_V1_Reply) {
        refusedCount.increment(by: frame.checked.refusals.count)
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = frame.command.correlation
        reply.submit.refusals = frame.checked.refusals.map(\.bus)
        return (frame.replyTo, reply)
    }

    private static func failure(of command: Mss_Bus_V1_SubmitCommand, _ reason: String) -> Mss_Bus_V1_Reply {
        .with {
            $0.correlation = command.correlation
            $0.failure.reason = reason
        }
    }
}
