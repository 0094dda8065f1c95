/// A point of civil time in whole milliseconds since 1970; used for validity and display, never for leases.
package struct WallTime: Hashable, Comparable, Sendable {
    package let milliseconds: Int64
    package init(milliseconds: Int64) { self.milliseconds = milliseconds }
    package static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }
    package static func + (time: WallTime, duration: Duration) -> WallTime {
        WallTime(milliseconds: time.milliseconds + duration.wholeMilliseconds)
    }
}

extension WallTime {
    /// ISO 8601 in UTC to the millisecond, such as 2023-11-14T22:13:20.123Z.
    package var text: String {
        let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        let (day, time) = rest < 0 ? (days - 1, rest + 86_400_000) : (days, rest)
        // Days since 1970 to a date of the Gregorian calendar, in eras of 400 years that begin with March.
        let era = (day + 719_468).quotientAndRemainder(dividingBy: 146_097)
        let dayOfEra = era.remainder < 0 ? era.remainder + 146_097 : era.remainder
        let year = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * month + 2) / 5 + 1
        let civilMonth = month < 10 ? month + 3 : month - 9
        let eras = era.remainder < 0 ? era.quotient - 1 : era.quotient
        let civilYear = year + eras * 400 + (civilMonth <= 2 ? 1 : 0)
        func digits(_ number: Int64, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        return "\(digits(civilYear, 4))-\(digits(civilMonth, 2))-\(digits(dayOfMonth, 2))"
            + "T\(digits(time / 3_600_000, 2)):\(digits(time / 60_000 % 60, 2)):\(digits(time / 1_000 % 60, 2))"
            + ".\(digits(time % 1_000, 3))Z"
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    package var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
