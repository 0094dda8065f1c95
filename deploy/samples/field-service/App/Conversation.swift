import ClientServices
import Foundation
import MobileSync

/// The conversation, page by page.
extension FieldApp {
    /// Shows the newest messages now, and again after each change.
    func showMessages(_ show: ([SyncOplog]) async -> Void) async throws {
        let pages = sync.client.observe(Self.conversation, count: Self.pageSize)
        for try await page in pages { await show(page.items.map(\.oplog)) }
    }

    /// Returns the messages before one, newest first: from the device, then from the service.
    func messages(before id: Int64) async throws -> [SyncOplog] {
        try await sync.client.history(of: Self.conversation, before: id, count: Self.pageSize).oplogs
    }
}

/// A message of the conversation, as the backend pushes it.
struct Message: Decodable, Sendable {
    var by: String
    var text: String
}

extension FieldApp {
    /// The Sync ID of the messages, and the component of the operation that sends one.
    static let conversation = "FIELD_CHAT"
    static let pageSize = 3
    /// The place of the badge that counts the unread messages.
    private static let place = BadgePath("home/conversation")

    /// The part that confirms messages; `showMessages` reads them from the store.
    static let reading = SyncAppPart("messages") { client in
        for try await batch in client.batches(of: conversation) { try await client.confirm(batch) }
    }

    /// The part that confirms the answers to sent messages.
    static let answers = SyncAppPart("answers") { client in
        for try await answer in client.operationResults(of: conversation) { try await client.confirm(answer) }
    }

    /// Sends a message to all users when there is a connection.
    func say(_ text: String) throws {
        let body = try JSONEncoder().encode(["text": text])
        try sync.client.submit([
            SyncOperation(component: Self.conversation, key: "all", name: "say", body: [UInt8](body))
        ])
    }

    /// Shows the number of unread messages now, and again after each change.
    func showUnread(_ show: (Int) async -> Void) async {
        let changes = badges.changes
        await show(unread)
        for await _ in changes { await show(unread) }
    }

    /// Clears the badge; the backend clears it on the user's other devices.
    func markAsRead() throws { if let place = Self.place { try badges.tap(place) } }

    private var unread: Int { Self.place.map { badges.count(at: $0, mode: .number) } ?? 0 }
}
