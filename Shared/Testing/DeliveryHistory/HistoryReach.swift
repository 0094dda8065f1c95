/// How many devices of the target must receive a push.
package enum HistoryReach: Hashable, Sendable, Codable {
    /// Each device.
    case everyone
    /// At least one device. The user receives the data once, and after a doubt another device receives it.
    case anyone
    /// Exactly one device. Without faults, `anyone` means this too.
    case one
    /// This device and no other, because a rule permits only this one.
    case device(String)
    /// Each device with a session that is open from before the call until the hand-out. A threshold discards only
    /// oplogs that were stored before a session opened.
    case connected
    /// No device must receive it: it is non-persistent, expires soon, or a threshold can discard it.
    case optional
    /// No device must receive it, and none may: a rule excludes all of them.
    case nobody
}
