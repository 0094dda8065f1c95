package import SyncModel

/// A place in a list of pushes, newest first: pushes after it are older.
package struct PushCursor: Hashable, Sendable {
    package let at: WallTime
    package let channelID: Int64
    package let oplogID: OplogID

    package init(at: WallTime, channelID: Int64, oplogID: OplogID) {
        self.at = at
        self.channelID = channelID
        self.oplogID = oplogID
    }

    /// A place before the newest push: the end of the year 9999.
    static let newest = PushCursor(
        at: WallTime(milliseconds: 253_402_300_799_999), channelID: .max, oplogID: OplogID(.max))

    /// The form in a link: three numbers with dots between them.
    package var text: String { "\(at.milliseconds).\(channelID).\(oplogID.value)" }

    /// A nil value means: the text does not have the form of `text`.
    package init?(text: String) {
        let numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { Int64($0) }
        guard numbers.count == 3, let at = numbers[0], let channelID = numbers[1], let oplogID = numbers[2],
            (0...Self.newest.at.milliseconds).contains(at)
        else { return nil }
        self.init(at: WallTime(milliseconds: at), channelID: channelID, oplogID: OplogID(oplogID))
    }
}
