import Foundation

/// A chart of one or two lines over time, as SVG made here: it needs no script and prints well; pure.
struct LineChart: Sendable {
    /// Values by moment; a moment without one leaves a gap of zero.
    struct Line: Sendable {
        let points: [(at: Int64, value: Double)]
    }

    private static let (width, height) = (560.0, 180.0)
    private static let (left, right, top, bottom) = (46.0, 8.0, 8.0, 20.0)

    /// - Parameters:
    ///   - from: where the time axis begins, in milliseconds since 1970.
    ///   - to: where it ends.
    ///   - title: what it shows, for those who do not see it.
    static func svg(_ lines: [Line], from: Int64, to: Int64, title: String) -> String {
        let most = niceCeiling(lines.flatMap(\.points).map(\.value).max() ?? 0)
        var text = """
            <svg viewBox="0 0 \(Int(width)) \(Int(height))" role="img" aria-label="\(escaped(title))" \
            xmlns="http://www.w3.org/2000/svg">
            """
        for part in [0.0, 0.5, 1] {
            let y = number(vertical(part * most, most))
            text += "<path class=\"grid-line\" d=\"M\(number(left)) \(y)H\(number(width - right))\"/>"
            text += "<text x=\"\(number(left - 6))\" y=\"\(y)\" text-anchor=\"end\" dominant-baseline=\"middle\">"
            text += "\(short(part * most))</text>"
        }
        for (index, line) in lines.enumerated() where !line.points.isEmpty {
            let points = line.points.map { point in
                "\(number(horizontal(point.at, from, to))) \(number(vertical(point.value, most)))"
            }
            if index == 0, let first = line.points.first, let last = line.points.last {
                let base = number(vertical(0, most))
                text += "<path class=\"area-1\" d=\"M\(number(horizontal(first.at, from, to))) \(base)L"
                text += points.joined(separator: "L") + "L\(number(horizontal(last.at, from, to))) \(base)Z\"/>"
            }
            text += "<path class=\"line-\(index + 1)\" d=\"M\(points.joined(separator: "L"))\"/>"
            // A line of one point is none.
            if let only = line.points.first, line.points.count == 1 {
                let place =
                    "cx=\"\(number(horizontal(only.at, from, to)))\" cy=\"\(number(vertical(only.value, most)))\""
                text += "<circle class=\"dot-\(index + 1)\" \(place) r=\"3\"/>"
            }
        }
        return text + "</svg>"
    }

    private static func horizontal(_ at: Int64, _ from: Int64, _ to: Int64) -> Double {
        let part = to > from ? Double(at - from) / Double(to - from) : 0
        return left + min(max(part, 0), 1) * (width - left - right)
    }

    private static func vertical(_ value: Double, _ most: Double) -> Double {
        height - bottom - value / most * (height - top - bottom)
    }

    /// The next of 1, 2, 5, 10, … at or above a value; 1 for nothing.
    static func niceCeiling(_ value: Double) -> Double {
        guard value > 1 else { return 1 }
        let power = pow(10, floor(log10(value)))
        return [1, 2, 5, 10].map { $0 * power }.first { $0 >= value } ?? value
    }

    /// A number in few letters: 950, 1.2k, 3M.
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
