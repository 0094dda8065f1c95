import SyncModel

/// A frame of operations that a relay must store.
struct OperationSubmission: Sendable {
    /// The number of the frame in its session.
    var number: UInt32
    var instanceID: InstanceID
    var deviceID: DeviceID
    var userID: UserID
    var sessionID: String
    /// In the device's order.
    var operations: [DeviceOperation]
}
