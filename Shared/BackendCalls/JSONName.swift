import SyncModel

/// The name of a member, equal to another only when it is spelt alike, unit by unit (RFC 8259 section 8.3).
///
/// `String` takes é as one character and é as e with an accent for equal, so it would find members twice that are not.
struct JSONName: Hashable, Sendable {
    let text: String

    static func == (left: JSONName, right: JSONName) -> Bool { left.text.isSame(as: right.text) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
