import GRDB

/// Sends a signal after each commit of this process to the local store.
///
/// SQLite reports no changes of tables without row ids, such as that of the oplogs. So the observer follows all
/// commits, and its listeners compare what they read.
final class CommitObserver: TransactionObserver, Sendable {
    private let signals: EventBroadcaster<Void>

    init(signals: EventBroadcaster<Void>) { self.signals = signals }

    func observes(eventsOfKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with: DatabaseEvent) {}
    func databaseDidCommit(_: Database) { signals.send(()) }
    func databaseDidRollback(_: Database) {}
}
