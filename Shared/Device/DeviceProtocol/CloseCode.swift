/// Why a connection is closed. The thousands define the device's reaction, so that an old device reacts correctly to an
/// unknown code (DeviceProtocol.md, Close codes).
package enum CloseCode: UInt32, Sendable, CaseIterable {
    /// The device requested it.
    case normal = 1000
    /// Nothing was received for too long.
    case idle = 1001
    /// The clock behind the device's signature is wrong. The device corrects it by `server_time_ms` and connects again.
    case clockOff = 1002
    /// This gateway shuts down.
    case draining = 2000
    /// Too many connections or binds of the app or the user.
    case overloaded = 2001
    /// The device has sent too many frames.
    case tooManyFrames = 2002
    /// The service cannot check the Connect now.
    case unavailable = 2003
    /// An operator ended this device's connection.
    case disconnected = 2004
    /// This gateway has more devices than the others.
    case surplus = 2005
    /// A frame was larger than allowed, malformed, or out of order.
    case protocolViolation = 5000
    /// There is no such instance, or it is disabled.
    case unknownInstance = 5001
    /// A newer connection of the same device is open. An automatic reconnect would end that one in turn.
    case superseded = 5002
    /// The Connect has no valid signature by a key of the instance, or was repeated.
    case signatureRefused = 5003
    /// The device id is bound to another secret: the device must choose another id.
    case registerAnew = 5004

    /// The reaction of a device to a close.
    package enum Group: Sendable, Hashable {
        case reconnectNow
        /// Not before `retry_after_ms`.
        case reconnectLater
        /// To the address in the frame.
        case reconnectElsewhere
        /// After the user has signed in again.
        case signInAgain
        /// Only when the app requests it.
        case stayAway

        /// The group of any code; a code outside of the ranges counts as "later".
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
