import SyncModel

/// The checks of spec H3 in their order, each with the code that H3 gives it: written from the spec, not from the code.
enum IngestTableCheck: Int, CaseIterable, Comparable, Sendable {
    /// Unreadable JSON or no instanceId.
    case readable
    case thirdMessageIDGiven
    /// bizType, linkToken (single), one of the payloads.
    case othersGiven
    case thirdMessageIDLength
    case payloadLength
    /// Any other wrong type, length, Base64, osType, version form, min > max, NUL in an id.
    case form
    /// The instance and an online configuration; a bizType over 30 cannot exist.
    case exists
    case scope
    case firstTime
    case outcome

    var code: ResultCode {
        switch self {
        case .readable, .othersGiven, .form: .argsIsNull
        case .thirdMessageIDGiven: .thirdMessageIDIsNull
        case .thirdMessageIDLength: .thirdMessageIDLong
        case .payloadLength: .payloadLong
        case .exists: .bizNotOnline
        case .scope: .notSupportGlobal
        case .firstTime: .duplicatedBizID
        case .outcome: .systemError
        }
    }

    /// Whether the push was handed to the store before the check could fail.
    var isAfterSubmission: Bool { self >= .firstTime }

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
