import Foundation

extension Data {
    /// Whether the data contains the bytes of this text.
    func contains(text: String) -> Bool { range(of: Data(text.utf8)) != nil }
}
