import ArgumentParser
import BusMessages
import Foundation
import MobileSync
import ServiceKit
import SyncModel

/// `mssctl doctor`: looks at the whole service as it runs, and says what is wrong and what to do.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Looks at everything that runs, and says what is wrong and what to do.",
        discussion: """
            Listens to what every process reports for some seconds: whether it is ready, its version, its clock, its \
            certificate; looks at the queues, and at the database where MSS_POSTGRES_HOST or _PORT is set; with \
            --instance and --biz-type it also makes a push to a device of its own. Ends with 1 when something is \
            wrong. \(ToolSettings.amqpHint)
            """)

    @OptionGroup var api: APIClient
    @Option(help: "For a test push: the instance.")
    var instance: String?
    @Option(help: "For a test push: a configuration for users or for devices.")
    var bizType: String?
    @Option(help: "For a test push to a user: who it is for; every device of the user gets it.")
    var user = "mss-doctor"
    @Option(help: "For a test push to a user: a file with a session of the user's, - for standard input.")
    var sessionFile: String?
    @Option(help: "For a test push: the gateway's address.")
    var host = "127.0.0.1"
    @Option(help: "For a test push: the gateway's port.")
    var port = 7443
    @Option(help: "For a test push: the authority that signed the gateway's certificate, as a PEM file.")
    var ca = ".local/tls/ca.pem"
    @OptionGroup var appKey: AppKeyOptions

    func validate() throws {
        guard (instance == nil) == (bizType == nil) else {
            throw ValidationError("--instance and --biz-type belong together: a test push needs both.")
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
            return .skipped("test push", "--instance and --biz-type would make one")
        }
        let configuration = try await client.configuration(instance, bizType)
        guard !configuration.kind.isGlobal else {
            throw ValidationError("\(bizType) is for everybody; a test push takes one for users or for devices")
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
