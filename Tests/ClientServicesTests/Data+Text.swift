import Foundation

extension Data {
    /// Whether these bytes stand somewhere in it.
    func contains(text: String) -> Bool { range(of: Data(text.utf8)) != nil }
}
