package import AMQP
package import BusMessages
import Foundation
package import SyncModel

/// A bus whose control data is kept current: what a process has that is no oplog writer.
package struct ControlConnection: Sendable {
    package let bus: MessageBus
    package let directory: ControlDirectory

    /// Puts them together; the directory asks over the bus.
    init(bus: MessageBus, directory: ControlDirectory) {
        self.bus = bus
        self.directory = directory
    }

    /// - Parameters:
    ///   - purpose: the keys that this process needs; it gets no others. Nil: all of them without their secrets, for
    ///     who shows them.
    ///   - extra: queues of this process beside that of its control changes.
    ///   - answers: the answers that it asks for and that do not come straight back.
    ///   - onLoaded: called after every snapshot of the control data that was taken over.
    package init(
        _ context: ServiceContext, keysFor purpose: AppKey.Purpose?, extra: AMQPTopology = AMQPTopology(),
        consumptions: [AMQPConsumption] = [],
        answers: [AnswerExchange] = [], onLoaded: @escaping @Sendable () -> Void = {}
    ) {
        let processID = UUID().uuidString
        let wakeUps = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let queue = Topology.controlChangesQueue(processID: processID)
        let changes = AMQPConsumption(queue: queue, prefetch: nil) { _ in wakeUps.continuation.yield() }
        bus = MessageBus(
            configuration: AMQPConfiguration(context.settings, connectionName: context.name),
            extra: extra.adding(.controlChanges(processID: processID)), consumptions: consumptions + [changes],
            answers: answers, reporter: context.reporter, logger: context.logger)
        let health = context.health
        health.set("amqp", isReady: false)
        health.set("control", isReady: false)
        bus.onConnectionChange { health.set("amqp", isReady: $0) }
        directory = ControlDirectory(bus: bus, keysFor: purpose, wakeUps: wakeUps, logger: context.logger) {
            health.set("control", isReady: true)
            onLoaded()
        }
    }
}
