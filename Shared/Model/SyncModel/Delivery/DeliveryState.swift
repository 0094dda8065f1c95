/// The state of one oplog at one receiver, for the delivery trace (H7).
package enum DeliveryState: Int, Hashable, Sendable, CaseIterable {
    // Final: the app has it, or never will.
    case delivered = 1
    case dead = 2
    case recalled = 3
    case overThreshold = 4
    case filteredBySystem = 5
    case filteredByVersion = 6
    case expired = 7
    case notPersisted = 8
    case outsideStage = 19
    // In progress.
    case stored = 9
    case handedOut = 10
    case onItsWay = 11
    // Waits until the reason ends.
    case instanceDisabled = 12
    case configurationOffline = 13
    case notConnected = 14
    case notOwner = 15
    case sessionNotValid = 16
    case waitsForForeground = 17
    case suspended = 18

    /// The state in the API.
    package var code: String {
        switch self {
        case .delivered: "DELIVERED"
        case .dead: "DEAD"
        case .recalled: "RECALLED"
        case .overThreshold: "OVER_THRESHOLD"
        case .filteredBySystem: "FILTERED_BY_OS"
        case .filteredByVersion: "FILTERED_BY_VERSION"
        case .expired: "EXPIRED"
        case .notPersisted: "NOT_PERSISTED"
        case .stored: "STORED"
        case .handedOut: "HANDED_OUT"
        case .onItsWay: "ON_ITS_WAY"
        case .instanceDisabled: "INSTANCE_DISABLED"
        case .configurationOffline: "CONFIGURATION_OFFLINE"
        case .notConnected: "NOT_CONNECTED"
        case .notOwner: "NOT_OWNER"
        case .sessionNotValid: "SESSION_NOT_VALID"
        case .waitsForForeground: "WAITS_FOR_FOREGROUND"
        case .suspended: "SUSPENDED"
        case .outsideStage: "OUTSIDE_STAGE"
        }
    }

    /// The reason for the state, as a sentence.
    package var sentence: String {
        switch self {
        case .delivered: "The app has confirmed it."
        case .dead: "The app was given it as often as the resend ladder allows and did not confirm it: a dead letter."
        case .recalled: "The backend has recalled it before this device stored it."
        case .overThreshold: "It was older than the newest of a backlog that the threshold lets through."
        case .filteredBySystem: "It is restricted to another operating system than the device's."
        case .filteredByVersion: "The device's app version is outside the range that it is restricted to."
        case .expired: "Its validity had ended before the device could be given it."
        case .notPersisted: "It is not persistent, and the device was not there to take it."
        case .stored: "The device has stored it; its app has not confirmed it yet."
        case .handedOut: "It was sent to the device, which has not acknowledged it yet."
        case .onItsWay: "Nothing stands in the way: it goes to the device at once."
        case .instanceDisabled: "The instance is disabled or does not exist; it goes when the instance is enabled."
        case .configurationOffline: "The configuration is offline or deleted; it goes when it comes online."
        case .notConnected: "The device is not connected; it goes when the device connects."
        case .notOwner: "Another device of the user is the owner of single-device data; it goes to that one."
        case .sessionNotValid:
            "The tenant has not called the user's session valid, has ended it, or its verdict has expired."
        case .waitsForForeground:
            "Global data is not pushed at once: it goes when the app connects or comes to the front."
        case .suspended: "The device does not take data of this bizType now; it goes when the device takes it again."
        case .outsideStage:
            "This stage of the roll-out is for other devices; a wider stage, as a push of its own, can be for this one."
        }
    }

    package init(_ reason: SkipReason) {
        switch reason {
        case .operatingSystem: self = .filteredBySystem
        case .version: self = .filteredByVersion
        case .expired: self = .expired
        case .notStored: self = .notPersisted
        case .share: self = .outsideStage
        }
    }

    package init(_ obstacle: IneligibilityReason) {
        switch obstacle {
        case .instanceDisabled: self = .instanceDisabled
        case .configurationOffline: self = .configurationOffline
        case .suspended: self = .suspended
        case .notOwner: self = .notOwner
        case .sessionNotValid: self = .sessionNotValid
        }
    }
}
