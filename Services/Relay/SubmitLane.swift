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
            let frames = deliveries.flatMap(frames)
            let replies = take(frames)
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

    /// Stores frames, all in one transaction; where the database cannot take one, the others all the same.
    ///
    /// - Returns: the answers, each with where it goes.
    private func take(_ frames: [Frame]) -> [(String, Mss_Bus_V1_Reply)] {
        let takings = frames.flatMap(\.checked.takings)
        guard !takings.isEmpty else { return frames.map(answer) }
        do throws(PostgresError) {
            let stored = try connection.run(
                DeviceOperationStore.take(takings, group: RandomName.make()), within: Self.limit)
            takenCount.increment(by: stored.taken)
            knownCount.increment(by: stored.known)
            taken(Set(takings.map(\.instanceID)), stored.known > 0)
            return frames.map(answer)
        } catch {
            guard case .server = error.code, frames.count > 1 else {
                logger.warning("operations were not taken", metadata: ["error": "\(error.message)"])
                return frames.map { ($0.replyTo, Self.failure(of: $0.command, error.message)) }
            }
            let middle = frames.count / 2
            return take(Array(frames[..<middle])) + take(Array(frames[middle...]))
        }
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
