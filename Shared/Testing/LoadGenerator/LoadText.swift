/// Formats numbers and tables for text reports.
enum LoadText {
    /// A number with this many decimals, and commas between thousands.
    static func number(_ value: Double, decimals: Int = 0) -> String {
        let scale = (0..<decimals).reduce(1) { scale, _ in scale * 10 }
        let scaled = Int((Swift.abs(value) * Double(scale)).rounded())
        let whole = String(scaled / scale)
        let grouped = whole.enumerated().map { index, digit in
            index > 0 && (whole.count - index) % 3 == 0 ? ",\(digit)" : "\(digit)"
        }.joined()
        let fraction = String(scaled % scale)
        let decimal = decimals == 0 ? "" : "." + String(repeating: "0", count: decimals - fraction.count) + fraction
        return (value < 0 && scaled > 0 ? "-" : "") + grouped + decimal
    }

    /// A table. The first column is left-aligned, the others are right-aligned.
    static func table(_ rows: [[String]]) -> [String] {
        let widths = (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 0 ? row[column] + space : space + row[column]
            }.joined(separator: "  ")
        }
    }
}
