import Foundation

extension String {
    /// Without white space at both ends, which people paste along.
    var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
