/// A client service that lives on the pushes of one Sync ID.
public protocol PushReceiver: Sendable {
    /// Takes the payload of one push; what it says is on the disk when this returns.
    ///
    /// - Parameter userID: the user whom the push is for; nil: it is for the device, or for everybody.
    /// - Throws: `ClientServiceError.store`: nothing has changed, and the push is to be given once more.
    func take(_ payload: [UInt8], userID: String?) throws(ClientServiceError) -> PushOutcome
}
