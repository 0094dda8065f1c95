/// Where a task is that asks a device for its log; the raw values stand in the database.
package enum DiagnosisState: Int16, Sendable, CaseIterable {
    /// The device has been asked, and nothing has come.
    case asked = 1
    /// Some parts are here.
    case coming = 2
    /// The whole log is here, and is what the device has collected.
    case whole = 3
    /// Nothing comes, for a reason.
    case refused = 4

    /// The state in commands and in the API.
    package var word: String {
        switch self {
        case .asked: "asked"
        case .coming: "coming"
        case .whole: "whole"
        case .refused: "refused"
        }
    }
}
