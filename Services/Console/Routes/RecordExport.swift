import Foundation
import SyncModel
import SyncStore
import Synchronization

/// The records that match a filter, the oldest first, one JSON object on each line. Reads one page at a time, as fast
/// as the client reads.
final class RecordExport: Sendable {
    private let database: Database
    private let filter: RecordFilter
    private let words: PageTexts
    /// Kept until the stream ends.
    private let reservation: StreamCount.Reservation
    /// The last number that was read; nil after the last page.
    private let position = Mutex<Int64?>(0)

    init(_ filter: RecordFilter, database: Database, words: PageTexts, reservation: StreamCount.Reservation) {
        self.reservation = reservation
        self.database = database
        self.filter = filter
        self.words = words
    }

    /// The lines, a page at a time.
    var pages: AsyncStream<String> { AsyncStream { await self.next() } }

    private func next() async -> String? {
        guard let after = position.withLock({ $0 }) else { return nil }
        let query = RecordStore.oldest(filter, after: after, limit: RecordStore.pageMax)
        // A truncated export ends with this line, so that it does not look complete.
        guard let page = try? await database.run(query) else {
            position.withLock { $0 = nil }
            return "{\"broken\":true}\n"
        }
        position.withLock { $0 = page.hasMore ? page.records.last?.number : nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let lines = page.records.compactMap { record in
            (try? encoder.encode(RecordItem(record, page: "", words))).map {
                String(decoding: $0, as: UTF8.self) + "\n"
            }
        }
        return lines.joined()
    }
}
