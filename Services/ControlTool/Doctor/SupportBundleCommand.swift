import AMQP
import ArgumentParser
import Foundation
import PostgreSQL
import ServiceKit
import SyncModel

/// `mssctl support-bundle`: what somebody who helps has to see, in one file, without secrets and payloads.
struct SupportBundleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "support-bundle",
        abstract: "Gathers what somebody who helps has to see into one file, without secrets and payloads.",
        discussion: """
            What the doctor says, how every process stands with its counters, queues, instances and configurations \
            without the paths of tenants' addresses, versions and sizes of the database, and the ends of logs. Look \
            into it before you give it away. \(ToolSettings.amqpHint)
            """)

    @Option(help: "The file; mss-support-<time>.tar.gz when absent.", completion: .file())
    var output: String?
    @Option(help: "A folder with logs; the local stack's when absent.", completion: .directory)
    var logs = ".local/log"

    /// Bytes of each log, its end.
    private static let logBytes: UInt64 = 2_000_000

    func run() async throws {
        let stamp = WallTime.now.text.filter { $0.isNumber || $0 == "T" }.prefix(15)
        let file = output ?? "mss-support-\(stamp).tar.gz"
        guard !FileManager.default.fileExists(atPath: file) else { throw ValidationError("\(file) is there already") }
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
        print("\(file) has all there is; look into it before you give it away")
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
        let text = try connection.run(statement, within: .seconds(30)).first?.text(0) ?? ""
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

    /// How a process stands, as the file has it.
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
