import AMQP
import BusMessages
import Logging
import Metrics
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Stores the operations of waiting frames in one transaction, and then replies.
struct SubmitHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_SubmitCommand

    static let queue = CommandQueue.submit
    static let prefetch: UInt16 = 64
    static let groupBodies = 32
    private static let limit = Duration.seconds(5)

    /// One frame of a group.
    private struct Frame {
        let command: Mss_Bus_V1_SubmitCommand
        let replyTo: String
        let checked: SubmitIntake.Checked
    }

    let bus: MessageBus
    private let intake: SubmitIntake
    private let isLoaded: @Sendable () -> Bool
    /// Called after each commit with the instances of the operations; `hasRepeats`: some operations were already
    /// stored.
    private let onStored: @Sendable (Set<InstanceID>, _ hasRepeats: Bool) -> Void
    private let logger: Logger
    private let storedCount = Counter(label: "mss_relay_operations_taken")
    private let knownCount = Counter(label: "mss_relay_operations_repeated")
    private let refusedCount = Counter(label: "mss_relay_operations_refused")

    init(
        bus: MessageBus, intake: SubmitIntake, isLoaded: @escaping @Sendable () -> Bool,
        onStored: @escaping @Sendable (Set<InstanceID>, _ hasRepeats: Bool) -> Void, logger: Logger
    ) {
        self.bus = bus
        self.intake = intake
        self.isLoaded = isLoaded
        self.onStored = onStored
        self.logger = logger
    }

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_SubmitCommands.elements(of: body) }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        let deadline = tasks.map { $0.delivery.receivedAt + Self.queue.timeout }.min() ?? .now
        let replies =
            isLoaded() ? storeFrames(tasks.flatMap(frames), on: connection, until: deadline) : tasks.flatMap(refused)
        bus.batched {
            for (key, reply) in replies { bus.reply(reply, to: key, through: Self.queue.answers) }
        }
        bus.acknowledge(tasks)
    }

    private func frames(of task: StoreTask<Command>) -> [Frame] {
        task.commands.map { Frame(command: $0, replyTo: task.replyTo, checked: intake.check($0)) }
    }

    private func refused(_ task: StoreTask<Command>) -> [(String, Mss_Bus_V1_Reply)] {
        task.commands.map { (task.replyTo, Self.failure(of: $0, "the relay has not loaded the control data yet")) }
    }

    /// Stores the frames in one transaction. If the database refuses a frame, the others are still stored. The frames
    /// of one device are stored in their order.
    ///
    /// - Returns: the replies, each with its address.
    private func storeFrames(
        _ frames: [Frame], on connection: PostgresConnection, until deadline: ContinuousClock.Instant
    ) -> [(String, Mss_Bus_V1_Reply)] {
        var replies: [(String, Mss_Bus_V1_Reply)] = []
        var plan = BatchPlan(frames) { [$0.command.instanceID, $0.command.deviceID] }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                do throws(PostgresError) {
                    try store(part.flatMap(\.checked.accepted), on: connection)
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

    private func store(
        _ operations: [DeviceOperationStore.SubmittedOperation], on connection: PostgresConnection
    ) throws(PostgresError) {
        guard !operations.isEmpty else { return }
        let stored = try connection.run(
            DeviceOperationStore.store(operations, group: RandomName.make()), within: Self.limit)
        storedCount.increment(by: stored.stored)
        knownCount.increment(by: stored.known)
        onStored(Set(operations.map(\.instanceID)), stored.known > 0)
    }

    private func fail(_ frames: [Frame], with error: PostgresError) -> [(String, Mss_Bus_V1_Reply)] {
        logger.warning(
            "operations were not stored; the device sends them again", metadata: ["error": "\(error.message)"])
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
