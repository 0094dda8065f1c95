import Foundation
import SyncModel

/// A chart of one or two lines over time, drawn as SVG without a script; pure.
struct LineChart: Sendable {
    /// Values by time; a nil value makes a gap.
    struct Line: Sendable {
        let name: String
        let points: [(at: Int64, value: Double?)]
    }

    /// One row of the chart as a table: the highest value of each line in a time span.
    struct Row: Sendable {
        let at: Int64
        let atText: String
        let values: [String]
    }

    private static let (width, height) = (560.0, 200.0)
    private static let (left, right, top, bottom) = (56.0, 16.0, 12.0, 32.0)
    /// The number of labels on the time axis after the first.
    private static let timeLabels: Int64 = 4
    private static let rowsMaximum = 12

    /// The prefix of the element ids within a page.
    let id: String
    let title: String
    let lines: [Line]
    /// The begin and the end of the time axis, in milliseconds since 1970.
    let from: Int64
    let to: Int64

    private var most: Double {
        Self.niceCeiling(lines.flatMap(\.points).compactMap(\.value).max() ?? 0)
    }

    // MARK: In words

    /// A description for screen readers: the newest and the highest value of each line.
    func summary(_ words: PageTexts) -> String {
        lines.map { line in
            let values = line.points.compactMap(\.value)
            guard let newest = values.last, let highest = values.max() else {
                return "\(line.name): \(words.text("chart.none"))."
            }
            return "\(line.name): \(words.text("chart.newest")) \(Self.short(newest)), "
                + "\(words.text("chart.highest")) \(Self.short(highest))."
        }.joined(separator: " ")
    }

    /// The chart as a table.
    var rows: [Row] {
        let points = lines.first?.points.count ?? 0
        let size = max(1, (points + Self.rowsMaximum - 1) / Self.rowsMaximum)
        return stride(from: 0, to: points, by: size).map { first in
            let at = lines[0].points[first].at
            return Row(
                at: at, atText: WallTime(milliseconds: at).text,
                values: lines.map { line in
                    line.points.dropFirst(first).prefix(size).compactMap(\.value).max().map(Self.short) ?? "–"
                })
        }
    }

    // MARK: Drawn

    /// The drawing, with its title and summary.
    func svg(_ words: PageTexts) -> String {
        var text = """
            <svg viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role="img" \
            aria-labelledby="\(id)-title \(id)-text" xmlns="http://www.w3.org/2000/svg">\
            <title id="\(id)-title">\(Self.escaped(title))</title>\
            <desc id="\(id)-text">\(Self.escaped(summary(words)))</desc>
            """
        text += valueAxis + timeAxis
        for (index, line) in lines.enumerated() {
            for part in Self.unbroken(line.points) { text += path(part, number: index + 1) }
        }
        return text + "</svg>"
    }

    private var valueAxis: String {
        [0.0, 0.5, 1].map { part in
            let y = Self.number(vertical(part * most))
            return
                "<path class=\"grid-line\" d=\"M\(Self.number(Self.left)) \(y)H\(Self.number(Self.width - Self.right))\"/>"
                + "<text x=\"\(Self.number(Self.left - 6))\" y=\"\(y)\" text-anchor=\"end\" "
                + "dominant-baseline=\"middle\">\(Self.short(part * most))</text>"
        }.joined()
    }

    /// Times in UTC; the page's script changes them to the reader's time zone.
    private var timeAxis: String {
        let spansDays = to - from > 86_400_000
        return (0...Self.timeLabels).map { number in
            let at = from + (to - from) * number / Self.timeLabels
            let anchor = number == 0 ? "start" : number == Self.timeLabels ? "end" : "middle"
            let between = number % 2 == 1 ? " class=\"between\"" : ""
            let text = WallTime(milliseconds: at).text
            let label =
                spansDays
                ? "\(text.dropFirst(5).prefix(5)) \(text.dropFirst(11).prefix(5))"
                : String(text.dropFirst(11).prefix(5))
            return "<text\(between) data-axis=\"\(at)\"\(spansDays ? " data-days" : "") "
                + "x=\"\(Self.number(horizontal(at)))\" y=\"\(Self.number(Self.height - 8))\" "
                + "text-anchor=\"\(anchor)\">\(label)</text>"
        }.joined()
    }

    private func path(_ part: [(at: Int64, value: Double)], number: Int) -> String {
        let points = part.map { "\(Self.number(horizontal($0.at))) \(Self.number(vertical($0.value)))" }
        // A path of one point is invisible, so it is drawn as a circle.
        guard part.count > 1 else {
            return part.map { point in
                "<circle class=\"dot-\(number)\" cx=\"\(Self.number(horizontal(point.at)))\" "
                    + "cy=\"\(Self.number(vertical(point.value)))\" r=\"3\"/>"
            }.joined()
        }
        var text = ""
        if number == 1, let first = part.first, let last = part.last {
            let base = Self.number(vertical(0))
            text += "<path class=\"area-1\" d=\"M\(Self.number(horizontal(first.at))) \(base)L"
            text += points.joined(separator: "L") + "L\(Self.number(horizontal(last.at))) \(base)Z\"/>"
        }
        return text + "<path class=\"line-\(number)\" d=\"M\(points.joined(separator: "L"))\"/>"
    }

    /// The parts of a line between its gaps.
    static func unbroken(_ points: [(at: Int64, value: Double?)]) -> [[(at: Int64, value: Double)]] {
        var parts: [[(at: Int64, value: Double)]] = [[]]
        for point in points {
            if let value = point.value {
                parts[parts.count - 1].append((point.at, value))
            } else if parts.last?.isEmpty == false {
                parts.append([])
            }
        }
        return parts.filter { !$0.isEmpty }
    }

    private func horizontal(_ at: Int64) -> Double {
        let part = to > from ? Double(at - from) / Double(to - from) : 0
        return Self.left + min(max(part, 0), 1) * (Self.width - Self.left - Self.right)
    }

    private func vertical(_ value: Double) -> Double {
        Self.height - Self.bottom - value / most * (Self.height - Self.top - Self.bottom)
    }

    /// The smallest of 1, 2, 5, 10, … that is not less than a value.
    static func niceCeiling(_ value: Double) -> Double {
        guard value > 1 else { return 1 }
        let power = pow(10, floor(log10(value)))
        return [1, 2, 5, 10].map { $0 * power }.first { $0 >= value } ?? value
    }

    /// A short form of a number: 950, 1.2k, 3M.
    static func short(_ value: Double) -> String {
        switch value {
        case 1_000_000...: trimmed(value / 1_000_000) + "M"
        case 1_000...: trimmed(value / 1_000) + "k"
        default: trimmed(value)
        }
    }

    private static func trimmed(_ value: Double) -> String {
        value == value.rounded() ? String(Int(value)) : String(format: "%.1f", value)
    }

    private static func number(_ value: Double) -> String { String(format: "%.1f", value) }

    private static func escaped(_ text: String) -> String {
        ScalarEscaping().escapeText(text)
    }
}
