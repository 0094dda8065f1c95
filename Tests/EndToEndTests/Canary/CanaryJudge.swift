import DeviceProtocol

/// Judges every frame of one connection: is it for the bound user, and may it still arrive? It has no I/O and reads no
/// clock (I6, I7).
///
/// A ping marks the moment after which data may no longer arrive: the gateway writes the pong after it has read the
/// ping. So checked data after that pong is a fault, however late the test reads the frame.
struct CanaryJudge {
    /// Checked data that may no longer arrive.
    struct Line {
        let bindNumber: UInt32
        let bizTypes: Set<String>
        let why: String
    }

    /// Counts of received data, which show that the run has tested something.
    struct Tally {
        var entries = 0
        /// Number of entries, by Sync ID.
        var entriesOfType: [String: Int] = [:]
        /// Lines whose pong has arrived, so that they are in force.
        var lines = 0
        var invalidStates = 0

        static func += (sum: inout Self, other: Self) {
            sum.entries += other.entries
            sum.entriesOfType.merge(other.entriesOfType, uniquingKeysWith: +)
            sum.lines += other.lines
            sum.invalidStates += other.invalidStates
        }
    }

    let instance: String
    let device: String
    private(set) var tally = Tally()
    /// The number of the last bind that the gateway answered.
    private(set) var bindNumber: UInt32 = 0
    private var users: [UInt32: String] = [:]
    private var drawn: [UInt64: Line] = [:]
    private var inForce: [Line] = []

    init(instance: String, device: String) {
        self.instance = instance
        self.device = device
    }

    /// Records a bind of this connection to a user; an empty name means no user.
    mutating func bound(_ user: String, as number: UInt32) { users[number] = user }

    /// Draws a line that is in force after the pong with this number.
    mutating func draw(_ line: Line, behind ping: UInt64) { drawn[ping] = line }

    /// Judges one frame. Returns the faults as text; empty when the frame is correct.
    mutating func received(_ packet: Mss_Device_V1_Packet) -> [String] {
        switch packet.body {
        case .bindResult(let result): bindNumber = result.bindNumber
        case .pong(let pong):
            if let line = drawn.removeValue(forKey: pong.number) {
                inForce.append(line)
                tally.lines += 1
            }
        case .sessionState(let state):
            if state.validity == .invalid { tally.invalidStates += 1 }
        case .push(let push): return push.batches.flatMap { judge($0) }
        default: break
        }
        return []
    }

    private mutating func judge(_ batch: Mss_Device_V1_ChannelBatch) -> [String] {
        var faults: [String] = []
        let isUsers = batch.kind == .user || batch.kind == .globalUser
        if isUsers, batch.bindNumber != bindNumber {
            faults.append("\(device): \(batch.bizType) of bind \(batch.bindNumber), but \(bindNumber) is answered")
        }
        if let line = inForce.first(where: {
            $0.bindNumber == batch.bindNumber && $0.bizTypes.contains(batch.bizType)
        }) {
            faults.append("\(device): \(batch.bizType) on bind \(batch.bindNumber), although \(line.why)")
        }
        for entry in batch.entries where entry.recalls == 0 {
            tally.entries += 1
            tally.entriesOfType[batch.bizType, default: 0] += 1
            if !isMine(CanaryPayload(entry.payload), isUsers: isUsers, bindNumber: batch.bindNumber) {
                let text = String(decoding: entry.payload, as: UTF8.self)
                faults.append("\(instance) \(device), bind \(batch.bindNumber): was sent \(text)")
            }
        }
        return faults
    }

    private func isMine(_ canary: CanaryPayload?, isUsers: Bool, bindNumber: UInt32) -> Bool {
        guard let canary, canary.instance == instance else { return false }
        return switch canary.audience {
        case .user(let user): isUsers && users[bindNumber] == user
        case .device(let name): !isUsers && name == device
        case .everybody: true
        }
    }
}
