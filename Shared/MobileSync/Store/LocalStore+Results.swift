import DeviceProtocol
import Foundation
import GRDB
import SyncModel

/// Results of operations, which the client itself takes: the app reads them from the outbox.
extension LocalStore {
    /// Stores the results of an oplog in the transaction that stores it; it counts as confirmed. One that is here
    /// already, or that is not understood, changes nothing else.
    func take(
        results entry: Mss_Device_V1_Entry, of channel: LocalChannel, outcome: inout StoreOutcome, in db: Database
    ) throws {
        for result in ResultPayload.results(in: [UInt8](entry.payload)) where try outbox.store(result, in: db) {
            outcome.hasResults = true
        }
        var entry = entry
        entry.payload = Data()
        try insert(entry, into: channel, as: .push, in: db)
        try db.cachedStatement(
            sql: """
                UPDATE oplog SET state = \(OplogState.confirmed.rawValue), needs_report = 1
                WHERE channel_id = ? AND oplog_id = ? AND state <> \(OplogState.confirmed.rawValue)
                """
        ).execute(arguments: [channel.row, entry.oplogID])
        outcome.hasNews = true
    }
}
