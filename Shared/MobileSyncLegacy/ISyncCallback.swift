/// Takes the data of one Sync ID; the Android face's callback.
///
/// It is called for one message after the other, on a thread of the library's, and should not block it for long.
public protocol ISyncCallback: AnyObject, Sendable {
    /// Data has come. Once it is processed, call `MPSync.reportMsgReceived`; else it comes again.
    func onReceiveMessage(_ message: SyncMessage)
}
