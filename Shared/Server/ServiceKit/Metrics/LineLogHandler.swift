import Foundation
import Logging

/// Writes each log event as one line on standard error: JSON for machines, text for a terminal
/// (Design.md#process-conventions).
struct LineLogHandler: LogHandler {
    let service: String
    let isJSON: Bool
    var logLevel = Logger.Level.info
    var metadata = Logger.Metadata()

    init(service: String, isJSON: Bool) {
        self.service = service
        self.isJSON = isJSON
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let fields = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
        let time = Date.now.formatted(
            .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
        var line: String
        if isJSON {
            let members = [
                ("ts", time), ("level", event.level.rawValue), ("service", service), ("msg", "\(event.message)"),
            ]
            line =
                "{"
                + (members + fields.map { ($0.key, "\($0.value)") })
                .map { "\(Self.quoted($0.0)):\(Self.quoted($0.1))" }.joined(separator: ",") + "}\n"
        } else {
            line = "\(time) \(event.level) \(event.message)"
            for (key, value) in fields { line += " \(key)=\(value)" }
            line += "\n"
        }
        FileHandle.standardError.write(Data(line.utf8))
    }

    /// A JSON string. Control characters are escaped, so they cannot reach a terminal or split a line.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..."\u{1f}", "\u{7f}": quoted += "\\u" + String(scalar.value + 0x10000, radix: 16).dropFirst()
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
