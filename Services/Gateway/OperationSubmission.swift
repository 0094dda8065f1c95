import SyncModel

/// A frame of operations that a session wants stored.
struct OperationSubmission: Sendable {
    /// Names the frame to the session.
    var number: UInt32
    var instanceID: InstanceID
    var deviceID: DeviceID
    var userID: UserID
    var sessionID: String
    /// In their order.
    var operations: [DeviceOperation]
}
