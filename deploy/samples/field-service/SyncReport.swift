import LocalEntities
import Synchronization

/// Collects the results of a device's changes as lines of text.
final class SyncReport: EntityHandler {
    private let lines = Mutex<[String]>([])

    /// The lines, in the order of the results.
    var results: [String] { lines.withLock { $0 } }

    func onReplaySuccess(_ entity: Entity) {
        add("accepted: \(entity.type.name.lowercased()) \(entity.key.asText ?? "")")
    }

    func onReplayFailure(_ entity: Entity, _ record: LogRecord) {
        add("refused: \(entity.type.name.lowercased()) \(entity.key.asText ?? ""): \(record.message)")
    }

    private func add(_ line: String) { lines.withLock { $0.append(line) } }
}
