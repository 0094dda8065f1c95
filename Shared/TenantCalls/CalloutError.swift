/// Why a call that was allowed has no answer.
package enum CalloutError: Error, CustomStringConvertible {
    case tooLong
    case closed
    case notInTime

    package var description: String {
        switch self {
        case .tooLong: "the answer, its head or its framing is too long"
        case .closed: "the connection was closed before the answer was whole"
        case .notInTime: "no answer within the limit"
        }
    }
}
