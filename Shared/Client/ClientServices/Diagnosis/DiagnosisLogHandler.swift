public import Logging

/// A `LogHandler` of swift-log that writes to a `DiagnosisLog`. Several handlers can share one log.
public struct DiagnosisLogHandler: LogHandler {
    private let log: DiagnosisLog
    private let label: String
    public var logLevel: Logger.Level
    public var metadata = Logger.Metadata()

    init(log: DiagnosisLog, label: String, logLevel: Logger.Level) {
        self.log = log
        self.label = label
        self.logLevel = logLevel
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var fields = metadata.merging(event.metadata ?? [:]) { $1 }
        if let error = event.error { fields["error"] = "\(error)" }
        log.append(level: event.level, label: label, message: "\(event.message)", metadata: fields)
    }
}
