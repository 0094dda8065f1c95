import ArgumentParser
import BusMessages
import Foundation
import MobileSync
import ServiceKit
import SyncModel
import ToolSupport

/// `mssctl doctor`: checks the running service, and prints problems and remedies.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Checks the running service, and prints problems and remedies.",
        discussion: """
            Collects reports of all processes for some seconds: readiness, version, clock, certificate. Checks the \
            queues, and the database if MSS_POSTGRES_HOST or _PORT is set. With --instance and --biz-type it also \
            makes a test push to a device of its own. If there is a problem, the exit code is 1. \
            \(ToolSettings.amqpHint)
            """)

    @OptionGroup var api: APIClient
    @Option(help: "Instance of a test push.")
    var instance: String?
    @Option(help: "Sync ID of a test push, appointed to users or devices.")
    var bizType: String?
    @Option(help: "User of a test push; every device of the user receives it.")
    var user = "mss-doctor"
    @Option(help: "File with a session id of the user for a test push, - for standard input.")
    var sessionFile: String?
    @Option(help: "Address of the gateway for a test push.")
    var host = "127.0.0.1"
    @Option(help: "Port of the gateway for a test push.")
    var port = 7443
    @Option(help: "PEM file with the authority of the gateway's certificate for a test push.")
    var ca = ".local/tls/ca.pem"
    @OptionGroup var appKey: AppKeyOptions

    func validate() throws {
        guard (instance == nil) == (bizType == nil) else {
            throw ValidationError("--instance and --biz-type need each other: a test push needs both.")
        }
    }

    func run() async throws {
        var findings = try DatabaseDiagnosis.ofSettings()
        findings += try await ServiceSurvey.with { client, survey in
            guard let client, let survey else { return [ServiceSurvey.noBroker] }
            return survey.diagnosis.findings + [try await testPush(client)]
        }
        for finding in findings { print(finding.lines) }
        if findings.contains(where: { $0.grade == .problem }) { throw ExitCode.failure }
    }

    private func testPush(_ client: ControlClient) async throws -> Finding {
        guard let instance, let bizType else {
            return .skipped("test push", "name --instance and --biz-type for a test push")
        }
        let configuration = try await client.configuration(instance, bizType)
        guard !configuration.kind.isGlobal else {
            throw ValidationError(
                "\(bizType) is global; a test push needs a Sync ID that is appointed to users or devices")
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "mss-doctor-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let device = SyncClientConfiguration(
            host: host, port: port, instanceID: instance, deviceID: folder.lastPathComponent,
            storePath: folder.appending(path: "store.sqlite").path, trust: .certificateAuthority(file: ca),
            appKey: try appKey.key())
        let api = api
        return try await TestPush(
            client: device, configuration: configuration, user: user,
            session: try sessionFile.map(RevokeCommand.session) ?? "mss-doctor"
        ) { target, id in
            let members = ["bizType": bizType, "linkToken": target, "thirdMsgId": id, "payload": "mssctl doctor"]
            return try await api.call("sync/single", [("instanceId", instance)], body: members)
        }.finding()
    }
}
