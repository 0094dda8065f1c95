/// Receives the data of one Sync ID; the callback of the Android compatibility API.
///
/// The library calls it for one message after another, on its own thread. The callback should not block this thread for
/// long.
public protocol ISyncCallback: AnyObject, Sendable {
    /// Called with new data. After the app has processed the message, call `MPSync.reportMsgReceived`; otherwise the
    /// data arrives again.
    func onReceiveMessage(_ message: SyncMessage)
}
