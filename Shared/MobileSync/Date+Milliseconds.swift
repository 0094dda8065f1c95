package import Foundation

extension Date {
    /// A moment in whole milliseconds since 1970.
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Milliseconds since 1970, to the nearest; the ends of the range for what is beyond, and for what is no number.
    package var milliseconds: Int64 {
        let value = (timeIntervalSince1970 * 1_000).rounded()
        return Int64(exactly: value) ?? (value > 0 ? .max : .min)
    }
}
