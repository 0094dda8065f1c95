/// A wall-clock time in whole milliseconds since 1970. For validity and display, never for leases.
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
        let (day, time) = civil
        return "\(Self.digits(day.year, 4))-\(Self.digits(day.month, 2))-\(Self.digits(day.day, 2))T\(Self.clock(time))"
            + ".\(Self.digits(time % 1_000, 3))Z"
    }

    /// The second as a date of an HTTP header, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    package var httpDate: String {
        let (day, time) = civil
        // Day 0 was a Thursday.
        let weekday = ((day.daysSinceEpoch + 4) % 7 + 7) % 7
        return "\(Self.weekdays[Int(weekday)]), \(Self.digits(day.day, 2)) \(Self.months[Int(day.month) - 1])"
            + " \(Self.digits(day.year, 4)) \(Self.clock(time)) GMT"
    }

    /// Parses a date of an HTTP header; nil for any other form. The day of the week is not checked. A leap second is the
    /// second before it.
    package init?(httpDate text: String) {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[0].count == 4, parts[0].hasSuffix(","), parts[5] == "GMT",
            let day = Self.number(parts[1], digits: 2), let month = Self.months.firstIndex(of: String(parts[2])),
            let year = Self.number(parts[3], digits: 4), year > 0,
            let date = CivilDay(year: year, month: Int64(month) + 1, day: day)
        else { return nil }
        let time = parts[4].split(separator: ":", omittingEmptySubsequences: false).map { Self.number($0, digits: 2) }
        guard time.count == 3, let hour = time[0], let minute = time[1], let second = time[2], hour < 24, minute < 60,
            second < 61
        else { return nil }
        let seconds = date.daysSinceEpoch * 86_400 + hour * 3_600 + minute * 60 + min(second, 59)
        self.init(milliseconds: seconds * 1_000)
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// The day in UTC, and the milliseconds since its begin.
    private var civil: (day: CivilDay, time: Int64) {
        let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        return rest < 0
            ? (CivilDay(daysSinceEpoch: days - 1), rest + 86_400_000) : (CivilDay(daysSinceEpoch: days), rest)
    }

    private static func clock(_ time: Int64) -> String {
        "\(digits(time / 3_600_000, 2)):\(digits(time / 60_000 % 60, 2)):\(digits(time / 1_000 % 60, 2))"
    }

    private static func digits(_ number: Int64, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }

    private static func number(_ text: Substring, digits: Int) -> Int64? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }
}

/// A day of the Gregorian calendar. The year starts in March in its computations, so that the leap day is the last day.
private struct CivilDay {
    let year: Int64
    /// 1 to 12.
    let month: Int64
    let day: Int64

    /// The value is nil for a day that its month does not have.
    init?(year: Int64, month: Int64, day: Int64) {
        let isLeap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...12).contains(month), (1...days[Int(month) - 1]).contains(Int(day)) else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// Converts days since 1970, in eras of 400 years.
    init(daysSinceEpoch days: Int64) {
        let era = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
        let dayOfEra = era.remainder < 0 ? era.remainder + 146_097 : era.remainder
        let year = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        let eras = era.remainder < 0 ? era.quotient - 1 : era.quotient
        self.day = dayOfYear - (153 * month + 2) / 5 + 1
        self.month = month < 10 ? month + 3 : month - 9
        self.year = year + eras * 400 + (self.month <= 2 ? 1 : 0)
    }

    /// Days since 1970; for years from 0.
    var daysSinceEpoch: Int64 {
        let shifted = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    package var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
