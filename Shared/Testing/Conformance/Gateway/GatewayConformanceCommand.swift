import ArgumentParser
import Foundation
import MobileSync
import ToolSupport

/// `mssctl conformance gateway`: a scripted device that checks a running gateway.
struct GatewayConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gateway", abstract: "Checks a running gateway.",
        discussion: """
            The command pushes through the HTTP API of the same service. Every case uses new devices and users. Their \
            data expires like all data.
            """)

    @Option(help: "Address of the gateway.")
    var host = "127.0.0.1"
    @Option(help: "Port of the gateway.")
    var port = 7443
    @Option(help: "PEM file with the authority of the gateway's certificate.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "Address of the HTTP API.")
    var api = "http://127.0.0.1:7080"
    @Option(help: "The instance.")
    var instance = "demo_app"
    @Option(help: "Sync ID with target user, multi-device, persistent, without threshold and session check.")
    var bizType = "UCHAT"
    @Option(help: "Sync ID with target device; its case is not supported when absent.")
    var deviceBizType: String?
    @Option(help: "Instance that requires signatures; adds the cases of signed connects; needs --app-key.")
    var signedInstance: String?
    @OptionGroup var appKey: AppKeyOptions
    @Option(help: "Instance that binds device ids to secrets; adds the cases of device secrets.")
    var bindingInstance: String?
    @OptionGroup var options: ConformanceOptions

    /// Enough that slow cases wait together.
    private static let atOnce = 12

    func validate() throws {
        guard (1...65_535).contains(port) else { throw ValidationError("--port must be 1 to 65535.") }
        guard (signedInstance == nil) == (appKey.appKey == nil) else {
            throw ValidationError("--signed-instance and --app-key need each other.")
        }
    }

    func run() async throws {
        let key = try appKey.key()
        let signed = key == nil ? [] : GatewaySignatureCases.all
        let secrets = bindingInstance == nil ? [] : GatewaySecretCases.all
        let cases = try options.selected(of: GatewayCases.all + signed + secrets)
        if options.list { return options.show(cases) }
        guard FileManager.default.isReadableFile(atPath: ca) else {
            throw ValidationError("no certificate authority at \(ca): run deploy/up, or name the file with --ca")
        }
        let target = GatewayTarget(
            host: host, port: port, authority: ca,
            api: ConformanceAPI(url: api, instance: instance, bizType: bizType), deviceBizType: deviceBizType,
            signed: key.flatMap { key in signedInstance.map { ($0, ConnectSigner(key)) } },
            bindingInstance: bindingInstance)
        let run = ConformanceRun<GatewayTarget>(
            atOnce: options.atOnce ?? Self.atOnce, prepare: { target }, cleanUp: { _ in })
        try options.finish(await run.results(of: cases))
    }
}
