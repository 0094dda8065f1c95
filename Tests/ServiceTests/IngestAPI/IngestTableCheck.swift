import SyncModel

/// The checks of H3 in their order, each with its code in H3. The table is written from the rule, not from the code.
enum IngestTableCheck: Int, CaseIterable, Comparable, Sendable {
    /// Unreadable JSON or no instanceId.
    case readable
    case thirdMessageIDGiven
    /// bizType, linkToken (single), one of the payloads.
    case othersGiven
    case thirdMessageIDLength
    case payloadLength
    /// Any other wrong type, length, Base64, osType or version, min > max, and NUL in an id.
    case form
    /// The instance and an online configuration exist. A bizType over 30 characters cannot exist.
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

    /// Whether the check can fail only after the push went to the store.
    var isAfterSubmission: Bool { self >= .firstTime }

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
