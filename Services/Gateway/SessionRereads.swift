import BusMessages
import SyncModel

/// What one connection is to be given again, below its positions (spec D3); pure.
///
/// A number goes out once in a connection: what the device does not acknowledge comes again with the next.
struct SessionRereads {
    /// As many as the store tells at once; with fewer there are no more.
    static let listMax = 16

    private var waiting: [Mss_Bus_V1_Reread] = []
    private var sent: [UInt64: SessionStateMachine.ChannelKey] = [:]
    private var done: Set<UInt64> = []
    /// The device has them on its disk, which the store does not know.
    private var unreported: [UInt64: SessionStateMachine.ChannelKey] = [:]
    private var recalled: [Int64: Set<Int64>] = [:]
    private var mayBeMore = false

    /// Takes the list of a registration's answer. What was recalled while it was on its way is not in it.
    mutating func learn(_ list: [Mss_Bus_V1_Reread]) {
        waiting = list.filter { reread in
            let number = UInt64(bitPattern: reread.rereadID)
            return sent[number] == nil && !done.contains(number)
                && recalled[reread.channelID]?.contains(reread.oplog.id) != true
        }
        mayBeMore = list.count >= Self.listMax
        recalled = [:]
    }

    /// Takes out those that may go now; the others wait for what stands in their way.
    mutating func take(_ allows: (Mss_Bus_V1_Reread) -> SessionStateMachine.ChannelKey?) -> [Mss_Bus_V1_Reread] {
        guard !waiting.isEmpty else { return [] }
        var taken: [Mss_Bus_V1_Reread] = []
        waiting.removeAll { reread in
            guard let key = allows(reread) else { return false }
            sent[UInt64(bitPattern: reread.rereadID)] = key
            taken.append(reread)
            return true
        }
        return taken
    }

    /// Whether an oplog was recalled since the last list.
    func isRecalled(_ id: Int64, channelID: Int64) -> Bool { recalled[channelID]?.contains(id) ?? false }

    /// It was not written: the store is to tell it again.
    mutating func takeBack(_ number: UInt64) { sent[number] = nil }

    /// The device has it on its disk; a number that was not sent has no effect.
    mutating func acknowledged(_ number: UInt64) {
        guard let key = sent.removeValue(forKey: number) else { return }
        done.insert(number)
        unreported[number] = key
    }

    /// Whether the store is to be told of some.
    var owesReport: Bool { !unreported.isEmpty }

    /// Takes out those that the store may be told of, in the order of their numbers.
    mutating func takeReport(_ allows: (SessionStateMachine.ChannelKey) -> Bool) -> [UInt64] {
        let numbers = unreported.filter { allows($0.value) }.keys.sorted()
        for number in numbers { unreported[number] = nil }
        return numbers
    }

    /// Whether the store may have more than it told.
    mutating func wantsMore() -> Bool {
        defer { if sent.isEmpty { mayBeMore = false } }
        return mayBeMore && sent.isEmpty
    }

    /// A tombstone: it does not go out.
    mutating func recall(_ id: OplogID, channelID: Int64) {
        waiting.removeAll { $0.channelID == channelID && $0.oplog.id == id.value }
        recalled[channelID, default: []].insert(id.value)
    }

    /// Another user is bound: the device drops what is under way for the former.
    mutating func forgetUser() {
        waiting = []
        sent = sent.filter { !$0.value.kind.needsUser }
        unreported = unreported.filter { !$0.value.kind.needsUser }
    }
}
