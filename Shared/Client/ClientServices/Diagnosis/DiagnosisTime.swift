import Foundation

/// The text form of times in log files: UTC in a fixed length, so the order of the texts is the order of the times.
enum DiagnosisTime {
    private static let style = Date.ISO8601FormatStyle()

    /// The time, such as `2026-11-23T12:16:16.123Z`.
    static func text(_ milliseconds: Int64) -> String {
        // The fractions of `ISO8601FormatStyle` are rounded from a floating-point number.
        let (seconds, rest) = (milliseconds - remainder(milliseconds, 1_000), remainder(milliseconds, 1_000))
        let whole = Date(timeIntervalSince1970: Double(seconds / 1_000)).formatted(style)
        return whole.dropLast() + "." + String(1_000 + rest).dropFirst() + "Z"
    }

    /// The hour, such as `2026-11-23T12`.
    static func hourText(_ milliseconds: Int64) -> String { String(text(milliseconds).prefix(13)) }

    /// The start of such an hour; nil when the text is not an hour.
    static func hour(_ text: some StringProtocol) -> Int64? {
        guard let date = try? style.parse(text + ":00:00Z") else { return nil }
        let milliseconds = Int64(date.timeIntervalSince1970) * 1_000
        return hourText(milliseconds) == text ? milliseconds : nil
    }

    private static func remainder(_ number: Int64, _ unit: Int64) -> Int64 { ((number % unit) + unit) % unit }
}
