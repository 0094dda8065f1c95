package import AMQP
package import BusMessages
import Foundation
package import SyncModel

/// A bus and a current copy of the control data, for every process except the oplog writer.
package struct ControlConnection: Sendable {
    package let bus: MessageBus
    package let directory: ControlDirectory

    /// - Parameter directory: must use the same bus.
    init(bus: MessageBus, directory: ControlDirectory) {
        self.bus = bus
        self.directory = directory
    }

    /// - Parameters:
    ///   - purpose: the purpose of the keys that this process receives. A nil value means: all keys without their
    /// secrets, for
    ///     display.
    ///   - extra: further queues of this process.
    ///   - answers: the exchanges of the replies that this process waits for, other than those of oplog writers.
    ///   - onLoaded: called after each applied snapshot of the control data.
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
            answers: [.stored] + answers, reporter: context.reporter, logger: context.logger)
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
