import Logging

/// Formats one event as one line of a log file: time, level, label, message, then the metadata sorted by name. Pure.
enum LogLine {
    /// The length of the time at the start of a line, in bytes.
    static let timeBytes = 24
    /// The longest line in bytes; a longer line is cut.
    static let longest = 16_000

    /// The line with its line break. Line breaks and control characters in the event are escaped.
    static func bytes(
        at milliseconds: Int64, level: Logger.Level, label: String, message: String, metadata: Logger.Metadata
    ) -> [UInt8] {
        var line = Array("\(DiagnosisTime.text(milliseconds)) \(level.rawValue.uppercased()) ".utf8)
        append(label, to: &line)
        append(": " + message, to: &line)
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) { append(" \(key)=\(value)", to: &line) }
        if line.count > longest {
            line.removeSubrange((longest - 4)...)
            // Does not cut inside a UTF-8 character.
            while let last = line.last, last & 0xc0 == 0x80 { line.removeLast() }
            if let last = line.last, last & 0x80 != 0 { line.removeLast() }
            line += Array("…".utf8)
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private static func append(_ text: String, to line: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): line += Array(#"\\"#.utf8)
            case UInt8(ascii: "\n"): line += Array(#"\n"#.utf8)
            case 0..<0x20, 0x7f: line += Array(#"\u00"#.utf8) + hex(byte)
            default: line.append(byte)
            }
        }
    }

    private static func hex(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
