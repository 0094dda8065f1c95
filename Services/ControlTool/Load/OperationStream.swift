/// Operations that devices send up, open loop: one is due at its instant whatever became of earlier ones.
struct OperationStream: Hashable, Sendable {
    /// Of all devices together.
    var perSecond: Int
    var seconds: Int
    /// Things that each device does something to, in turns.
    var entities: Int
    /// What one device does at once, as one does that comes back from offline.
    var burst: Int
}
