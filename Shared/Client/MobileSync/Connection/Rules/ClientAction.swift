import DeviceProtocol
import SyncModel

/// An action that the state machine requests. The engine performs actions in order.
enum ClientAction: Hashable, Sendable {
    /// Write a frame.
    case send(Mss_Device_V1_Packet)
    /// Store the batches in one transaction, then report the result to the machine. User channels belong to this user.
    case store([Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32)
    /// Collect the confirmations and resends that the gateway has not recorded, of device channels and of this user's
    /// channels.
    case collectReport(userID: String?, bindNumber: UInt32)
    /// Mark this report as recorded by the gateway.
    case recorded(OplogReport, userID: String?)
    /// Collect this user's operations that the service has not accepted.
    case collectOperations(userID: String)
    /// Apply the service's reply about operations.
    case operationsAnswered(ClientOperations.Answer)
    /// Collect the values that the service is to store for this user.
    case collectParameters(userID: String)
    /// Apply the service's reply about values.
    case parametersAnswered(ClientParameters.Answer)
    /// Replace the known values that the service stores for this user.
    case replaceParameters(Mss_Device_V1_UserParameters, userID: String)
    /// Complete a request with its reply.
    case answered(ticket: UInt64, ClientRequests.Answer)
    /// The gateway has sent the complete backlog of the connect or the bind.
    case caughtUp(userID: String?)
    /// The gateway has accepted the connect. It can name the first wait of the resend ladder and the service's time.
    case connected(firstResend: Duration?, serverTime: WallTime?)
    /// Record the gateway's clock, because it refused the timestamp of the signature.
    case setSigningTime(WallTime)
    /// Record that the device owns the user's single-device data, as the bind with this number requested.
    case ownershipTaken(request: UInt64, epoch: Int64)
    /// Create a new device id and secret, because the id belongs to another device.
    case replaceIdentity
    /// Publish an event to the app.
    case notify(SyncEvent)
    /// End the connection.
    case end(ConnectionEnd)
}
