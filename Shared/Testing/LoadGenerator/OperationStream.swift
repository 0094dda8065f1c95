/// Operations of devices in open loop: each is submitted when it is due, regardless of earlier ones.
struct OperationStream: Hashable, Sendable {
    /// Rate of all devices together.
    var perSecond: Int
    var seconds: Int
    /// Number of entities that each device changes in turn.
    var entities: Int
    /// Operations that a device submits at once, as after an offline time.
    var burst: Int
}
