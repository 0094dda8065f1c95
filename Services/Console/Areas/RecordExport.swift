import Foundation
import SyncModel
import SyncStore
import Synchronization

/// The records that a filter lets through, the oldest first, a JSON object on each line; read page by page as the other
/// side takes them.
final class RecordExport: Sendable {
    private let database: Database
    private let filter: RecordFilter
    private let words: Words
    /// Held while the stream lives.
    private let place: StreamCount.Place
    /// The last number that was read; nil: all of them have been.
    private let position = Mutex<Int64?>(0)

    init(_ filter: RecordFilter, database: Database, words: Words, place: StreamCount.Place) {
        self.place = place
        self.database = database
        self.filter = filter
        self.words = words
    }

    /// The lines, a page at a time.
    var pages: AsyncStream<String> { AsyncStream { await self.next() } }

    private func next() async -> String? {
        guard let after = position.withLock({ $0 }) else { return nil }
        let query = RecordStore.oldest(filter, after: after, limit: RecordStore.pageMax)
        // An export that breaks off ends with a line that says so: it must not look whole.
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
