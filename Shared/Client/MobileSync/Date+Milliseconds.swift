package import Foundation

extension Date {
    /// Creates a date from whole milliseconds since 1970.
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Milliseconds since 1970, rounded. A value outside of the range of `Int64` gives its nearest bound; NaN gives
    /// `Int64.min`.
    package var milliseconds: Int64 {
        let value = (timeIntervalSince1970 * 1_000).rounded()
        return Int64(exactly: value) ?? (value > 0 ? .max : .min)
    }
}
