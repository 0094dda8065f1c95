package import AMQP
import BusMessages
package import ServiceKit
package import SyncStore
import Synchronization

/// A body on its way to a store worker, or the part of it whose commands belong to one store.
package struct CommandBody<Command: Sendable>: Sendable {
    package let delivery: AMQPDelivery
    /// The commands of the part; nil: the body is whole and not decoded yet.
    let commands: [Command]?
    /// Counts the parts that were not executed yet; nil: the body is whole.
    let partsLeft: PartCounter?

    /// A whole body.
    package init(_ delivery: AMQPDelivery) { self.init(delivery, commands: nil, partsLeft: nil) }

    init(_ delivery: AMQPDelivery, commands: [Command]?, partsLeft: PartCounter?) {
        (self.delivery, self.commands, self.partsLeft) = (delivery, commands, partsLeft)
    }
}

/// Counts the parts of a body that were not executed yet. The last one acknowledges the body.
final class PartCounter: Sendable {
    private let left: Mutex<Int>

    init(_ parts: Int) { left = Mutex(parts) }

    /// Counts one part as executed; true: it was the last one.
    func finishPart() -> Bool {
        left.withLock { left in
            left -= 1
            return left == 0
        }
    }
}

/// Executes commands that each belong to one store.
package protocol StoreCommandHandler: CommandHandler {
    /// The number of the store with the data of a command.
    static func storeNumber(of command: Command, in stores: StoreLayout) -> Int
}

/// The work queues from one command queue to its store workers. Where each store schema has one of its own, a body with
/// commands of several stores is divided. So a stalled store delays no other one until the prefetch is full of bodies
/// that wait for it.
package final class WorkQueues<Handler: CommandHandler>: Sendable {
    package let queues: [WorkQueue<CommandBody<Handler.Command>>]
    private let storeNumber: (@Sendable (Handler.Command) -> Int)?

    /// One work queue for all stores.
    package init() {
        queues = [WorkQueue()]
        storeNumber = nil
    }

    /// A work queue for each store.
    package init(of stores: StoreLayout) where Handler: StoreCommandHandler {
        queues = stores.stores.map { _ in WorkQueue() }
        guard stores.count > 1 else {
            storeNumber = nil
            return
        }
        storeNumber = { Handler.storeNumber(of: $0, in: stores) }
    }

    /// Consumes the command queue into the work queues.
    package var consumption: AMQPConsumption {
        AMQPConsumption(queue: Handler.queue.rawValue, prefetch: Handler.prefetch) { self.add($0) }
    }

    /// Adds bodies in order. Callable from any thread; never blocks.
    package func add(_ deliveries: [AMQPDelivery]) {
        guard let storeNumber else { return queues[0].add(contentsOf: deliveries.lazy.map { CommandBody($0) }) }
        var added: [[CommandBody<Handler.Command>]] = Array(repeating: [], count: queues.count)
        for delivery in deliveries {
            // A worker rejects a body that is not readable.
            let parts = Dictionary(grouping: Handler.commands(of: delivery.body) ?? [], by: storeNumber)
            guard parts.count > 1 else {
                added[parts.keys.first ?? 0].append(CommandBody(delivery))
                continue
            }
            let counter = PartCounter(parts.count)
            for (number, commands) in parts {
                added[number].append(CommandBody(delivery, commands: commands, partsLeft: counter))
            }
        }
        for (queue, bodies) in zip(queues, added) where !bodies.isEmpty { queue.add(contentsOf: bodies) }
    }

    /// Ends every work queue. The workers still execute the waiting bodies.
    package func finish() {
        for queue in queues { queue.finish() }
    }
}

extension MessageBus {
    /// Acknowledges the bodies of executed tasks. A divided body is acknowledged with its last part.
    package func acknowledge<Command>(_ tasks: [StoreTask<Command>]) {
        acknowledge(tasks.compactMap { $0.body.partsLeft?.finishPart() == false ? nil : $0.delivery }, as: .accepted)
    }
}
