import Foundation

extension Date {
    /// Since 1970.
    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Since 1970; the ends of the range for dates beyond.
    var milliseconds: Int64 {
        let value = (timeIntervalSince1970 * 1_000).rounded()
        return Int64(exactly: value) ?? (value < 0 ? .min : .max)
    }
}
