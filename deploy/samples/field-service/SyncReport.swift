import LocalEntities
import Synchronization

/// What became of a device's changes, for people.
final class SyncReport: EntityHandler {
    private let lines = Mutex<[String]>([])

    /// In the order in which they became known.
    var told: [String] { lines.withLock { $0 } }

    func onReplaySuccess(_ entity: Entity) {
        add("accepted: \(entity.type.name.lowercased()) \(entity.key.asText ?? "")")
    }

    func onReplayFailure(_ entity: Entity, _ record: LogRecord) {
        add("refused: \(entity.type.name.lowercased()) \(entity.key.asText ?? ""): \(record.message)")
    }

    private func add(_ line: String) { lines.withLock { $0.append(line) } }
}
