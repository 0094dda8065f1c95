package import Foundation

/// One element of the guide's JSON text, as an app parses it.
package struct SyncItem: Decodable, Hashable, Sendable {
    /// The payload: text, or Base64 when `isB` is 1.
    let pl: String
    /// 1 when the payload is binary; absent otherwise.
    let isB: Int?
    /// The oplog id.
    package let mk: Int64
    /// The time at which the service accepted it, in milliseconds since 1970.
    package let mct: Int64

    /// The data that the backend pushed.
    package var content: Data { isB == 1 ? Data(base64Encoded: pl) ?? Data() : Data(pl.utf8) }
    /// The backend pushed bytes, not text.
    package var isBinary: Bool { isB == 1 }

    /// The elements of a message's `msgData`, or of a notification's `op`; nil when the text has another form.
    static func all(in text: String) -> [SyncItem]? {
        try? JSONDecoder().decode([SyncItem].self, from: Data(text.utf8))
    }
}
