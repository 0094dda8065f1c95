/// Every code that the HTTP API answers with (spec H1, H3).
package enum ResultCode: String, Sendable, CaseIterable {
    case success = "SUCCESS"
    case duplicatedBizID = "DUPLICATED_BIZ_ID"
    case notOnline = "NOT_ONLINE"
    case argsIsNull = "ARGS_IS_NULL"
    case thirdMessageIDIsNull = "THIRDMSGID_IS_NULL"
    case thirdMessageIDLong = "THIRD_MSG_ID_LONG"
    case payloadLong = "PAYLOAD_LONG"
    case bizNotOnline = "BIZ_NOT_ONLINE"
    case notSupportGlobal = "NOT_SUPPORT_GLOBAL"
    case systemError = "SYSTEM_ERROR"

    /// The `success` member of the answer: true when exactly one oplog of this key is stored (spec H1).
    package var isSuccess: Bool {
        switch self {
        case .success, .duplicatedBizID, .notOnline: true
        default: false
        }
    }
}
