/// Why a connection is closed. The thousands say what the device must do, so that an old device obeys a code that it
/// does not know (DeviceProtocol.md, Close codes).
package enum CloseCode: UInt32, Sendable, CaseIterable {
    /// The device asked for it.
    case normal = 1000
    /// Nothing was heard for too long.
    case idle = 1001
    /// The clock that the device signed with is off: it goes by `server_time_ms` and comes again.
    case clockOff = 1002
    /// This gateway shuts down.
    case draining = 2000
    /// More connections or binds came than this gateway takes from the app or the user.
    case overloaded = 2001
    /// The device sent more, or more often, than it may.
    case tooManyFrames = 2002
    /// What decides on the Connect cannot be reached.
    case unavailable = 2003
    /// An operator ended this device's connection.
    case disconnected = 2004
    /// This gateway has more devices than others.
    case surplus = 2005
    /// A frame was larger than allowed, malformed, or out of order.
    case protocolViolation = 5000
    /// There is no such instance, or it is disabled.
    case unknownInstance = 5001
    /// A newer connection of the same device is open; coming back by itself would make the two fight.
    case superseded = 5002
    /// The Connect is not signed by a key of the instance, or was sent before.
    case signatureRefused = 5003
    /// The device id belongs to another secret: the device takes another id.
    case registerAnew = 5004

    /// What a device does after a close.
    package enum Group: Sendable, Hashable {
        case reconnectNow
        /// Not before `retry_after_ms`.
        case reconnectLater
        /// To another address.
        case reconnectElsewhere
        /// After the user has signed in again.
        case signInAgain
        /// Only when the app asks for it.
        case stayAway

        /// The group of any code, known or not; what is out of every range counts as "later".
        package init(code: UInt32) {
            switch code / 1_000 {
            case 1: self = .reconnectNow
            case 3: self = .reconnectElsewhere
            case 4: self = .signInAgain
            case 5: self = .stayAway
            default: self = .reconnectLater
            }
        }
    }
}
