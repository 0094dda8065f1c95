import AMQP
import ArgumentParser
import ChildProcesses
import Foundation
import PostgreSQL
import ServiceKit
import SyncModel
import ToolSupport

/// `mssctl support-bundle`: collects diagnostic data in one file, without secrets and payloads.
struct SupportBundleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "support-bundle",
        abstract: "Collects diagnostic data for support in one file, without secrets and payloads.",
        discussion: """
            Contains the findings of mssctl doctor, state and counters of every process, queues, instances and \
            configurations without the paths of tenants' URLs, versions and sizes of the database, and the ends of \
            logs. Check the file before you pass it on. \(ToolSettings.amqpHint)
            """)

    @Option(help: "Output file; mss-support-<time>.tar.gz when absent.", completion: .file())
    var output: String?
    @Option(help: "Folder with logs; the logs of the local stack when absent.", completion: .directory)
    var logs = ".local/log"

    /// Number of bytes from the end of each log.
    private static let logBytes: UInt64 = 2_000_000

    func run() async throws {
        let stamp = WallTime.now.text.filter { $0.isNumber || $0 == "T" }.prefix(15)
        let file = output ?? "mss-support-\(stamp).tar.gz"
        guard !FileManager.default.fileExists(atPath: file) else { throw ValidationError("\(file) exists already") }
        let parent = FileManager.default.temporaryDirectory.appending(path: "mss-support-\(UUID().uuidString)")
        let folder = parent.appending(path: "mss-support-\(stamp)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: parent) }

        let redaction = try Redaction.ofSettings()
        func add(_ name: String, _ data: Data) throws {
            try redaction.of(data).write(to: folder.appending(path: name))
        }
        for (name, data) in try await service() { try add(name, data) }
        if try ToolSettings.nameDatabase() { try add("database.json", try database()) }
        for log in try endsOfLogs() { try add("log-\(log.name)", log.data) }
        _ = try await ChildProcess.output(
            of: ["tar", "-C", parent.path, "-czf", URL(filePath: file).path, folder.lastPathComponent], in: parent)
        print("wrote \(file); check it before you pass it on")
    }

    private func service() async throws -> [String: Data] {
        let database = try DatabaseDiagnosis.ofSettings()
        return try await ServiceSurvey.with { client, survey in
            let findings = database + (survey?.diagnosis.findings ?? [ServiceSurvey.noBroker])
            let doctor = Data((findings.map(\.lines).joined(separator: "\n") + "\n").utf8)
            guard let client, let survey else { return ["doctor.txt": doctor] }
            let control = try await client.snapshot()
            let instances = control.instances.map { instance in
                var shown = instance
                shown.validatorURL = Redaction.place(of: instance.validatorURL)
                shown.relayURL = Redaction.place(of: instance.relayURL)
                return shown
            }
            return [
                "doctor.txt": doctor,
                "processes.json": try Self.json(survey.heard.map(ProcessEntry.init)),
                "queues.json": try Self.json(
                    ((try? survey.queues.get()) ?? [:]).mapValues {
                        ["messages": $0.messages, "consumers": $0.consumers]
                    }),
                "configurations.json": try ExportCommand.json(instances, control.configurations),
            ]
        }
    }

    private func database() throws -> Data {
        let connection = try ToolSettings.database()
        defer { connection.close() }
        let statement = PostgresStatement(
            """
            SELECT json_build_object(
                'version', version(),
                'migrations', (SELECT json_agg(m ORDER BY m.name) FROM schema_migration m),
                'functions', (SELECT json_agg(f ORDER BY f.name) FROM schema_function f),
                'incarnation', (SELECT row_to_json(i) FROM incarnation i),
                'settings', (
                    SELECT json_object_agg(name, setting) FROM pg_settings
                    WHERE source NOT IN ('default', 'client') AND name NOT IN ('primary_conninfo', 'data_directory')),
                'tables', (
                    SELECT json_agg(t ORDER BY t.bytes DESC) FROM (
                        SELECT relname, n_live_tup, n_dead_tup, last_autovacuum, last_autoanalyze,
                            pg_total_relation_size(relid) AS bytes
                        FROM pg_stat_user_tables) t),
                'connections', (
                    SELECT json_agg(c) FROM (
                        SELECT usename, application_name, state, wait_event_type, count(*) FROM pg_stat_activity
                        GROUP BY 1, 2, 3, 4) c))::text
            """)
        let text = try connection.run(statement, within: .seconds(30)).first(String.self) ?? ""
        return Data(text.utf8)
    }

    private func endsOfLogs() throws -> [(name: String, data: Data)] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: logs)) ?? []
        return try names.filter { $0.hasSuffix(".log") }.sorted().map { name in
            let handle = try FileHandle(forReadingFrom: URL(filePath: logs).appending(path: name))
            defer { try? handle.close() }
            let length = try handle.seekToEnd()
            try handle.seek(toOffset: length - min(length, Self.logBytes))
            return (name, try handle.readToEnd() ?? Data())
        }
    }

    private static func json(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    /// The state of a process in the file.
    private struct ProcessEntry: Encodable {
        let service, version, startedAt: String
        let isReady: Bool
        let conditions: [String: Bool]
        let figures: [String: Double]
        let clockAheadMs: Int64?

        init(_ heard: ServiceDiagnosis.Heard) {
            let report = heard.report
            (service, version, startedAt) = (report.service, report.version, report.startedAt.text)
            (isReady, conditions, figures) = (report.isReady, report.conditions, report.figures)
            clockAheadMs = heard.ahead?.wholeMilliseconds
        }
    }
}

/// Removes secrets from a support bundle. The service's logs and figures contain none (SEC16). This is a second check.
private struct Redaction {
    private let secrets: [String]

    /// - Parameter secrets: texts to remove. Short ones are ignored, because they would match other text.
    init(secrets: [String]) { self.secrets = secrets.filter { $0.count >= 8 } }

    /// A redaction of the passwords in the tool's settings.
    static func ofSettings() throws -> Redaction {
        let amqp = try ToolSettings.read(ProcessSettings.amqpKeys)[ProcessSettings.amqpPassword]
        guard try ToolSettings.nameDatabase() else { return Redaction(secrets: [amqp]) }
        return Redaction(secrets: [amqp, try ToolSettings.read(PostgresSettings.keys)[PostgresSettings.password]])
    }

    /// The data without secrets.
    func of(_ data: Data) -> Data {
        var text = String(decoding: data, as: UTF8.self)
        for secret in secrets { text = text.replacing(secret, with: "(secret)") }
        return Data(text.utf8)
    }

    /// Scheme, host and port of a URL. The path and the query can contain secrets.
    static func place(of url: String) -> String {
        guard var components = URLComponents(string: url), components.host != nil else {
            return url.isEmpty ? "" : "(set)"
        }
        (components.path, components.query, components.fragment) = ("", nil, nil)
        (components.user, components.password) = (nil, nil)
        return components.string ?? "(set)"
    }
}
