import DeviceProtocol
import SyncModel

/// What a connection's rules want done; performed in order.
enum ClientAction: Hashable, Sendable {
    /// Write a frame.
    case send(Mss_Device_V1_Packet)
    /// Store the batches in one transaction, then tell the machine what is stored. User channels are this user's.
    case store([Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32)
    /// Look for what the gateway has not recorded of the app's doing: in device channels, and in those of this user.
    case collectReport(userID: String?, bindNumber: UInt32)
    /// The gateway has recorded this: do not tell it again.
    case recorded(OplogReport, userID: String?)
    /// Look for operations of this user that the service has not taken.
    case collectOperations(userID: String)
    /// The service has answered operations.
    case operationsAnswered(ClientOperations.Answer)
    /// Look for values that the service is to keep for this user.
    case collectParameters(userID: String)
    /// The service has answered values.
    case parametersAnswered(ClientParameters.Answer)
    /// What the service keeps for this user.
    case learnParameters(Mss_Device_V1_UserParameters, userID: String)
    /// A question has its answer.
    case answered(ticket: UInt64, ClientRequests.Answer)
    /// Everything that waited when the connection opened, or the user was bound, has been sent.
    case caughtUp(userID: String?)
    /// The gateway has greeted; it may have named the first wait of the resend ladder, and the service's time.
    case connected(firstResend: Duration?, serverTime: WallTime?)
    /// The gateway has refused the time of the signature and told its own clock.
    case signBy(WallTime)
    /// The device owns the user's single-device data, as the app asked by the bind with this number.
    case ownershipTaken(request: UInt64, epoch: Int64)
    /// The device id is another's: take a new one.
    case takeNewIdentity
    /// Tell the app.
    case notify(SyncEvent)
    /// The connection is over.
    case end(ConnectionEnd)
}
