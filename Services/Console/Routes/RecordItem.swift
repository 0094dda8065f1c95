import Credentials
import Foundation
import SyncModel

/// An audit record as the API and the pages show it (C9).
struct RecordItem: Encodable, Sendable {
    let number: Int64
    /// Milliseconds since 1970.
    let at: Int64
    let actor: String
    /// The address or host of the actor; empty when it is not known.
    let source: String
    let action: String
    let instanceId: String
    let subject: String
    let before: String?
    let after: String?
    let previousHash: String
    let hash: String

    // For pages alone.
    let atText: String
    let actionWord: String
    let page: String

    private enum CodingKeys: String, CodingKey {
        case number, at, actor, source, action, instanceId, subject, before, after, previousHash, hash
    }

    /// - Parameter page: the path of the record's page.
    init(_ record: OperationRecord, page: String, _ words: PageTexts) {
        number = record.number
        at = record.recordedAt.milliseconds
        atText = record.recordedAt.text
        actor = record.actor
        source = record.source
        action = record.actionWord
        actionWord = words.text("action.\(record.actionWord)")
        instanceId = record.instanceID.text
        subject = record.subject
        before = record.before
        after = record.after
        previousHash = HexText.of(record.previousHash)
        hash = HexText.of(record.hash)
        self.page = page
    }
}
