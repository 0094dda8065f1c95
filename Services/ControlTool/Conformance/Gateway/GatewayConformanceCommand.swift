import ArgumentParser
import Foundation
import MobileSync

/// `mssctl conformance gateway`: a scripted device, good and bad, against a running gateway.
struct GatewayConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gateway", abstract: "Checks a running gateway.",
        discussion: """
            Pushes are made through the HTTP API of the same service. Every case has devices and users of its own; \
            what they leave behind expires as any data.
            """)

    @Option(help: "The gateway's address.")
    var host = "127.0.0.1"
    @Option(help: "The gateway's port.")
    var port = 7443
    @Option(help: "The authority that signed the gateway's certificate, as a PEM file.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "The HTTP API's address.")
    var api = "http://127.0.0.1:7080"
    @Option(help: "The instance.")
    var instance = "demo_app"
    @Option(help: "A business type with user target, for all devices, kept, all re-pushed, without a session check.")
    var bizType = "UCHAT"
    @Option(help: "One with device target; without it that case is not supported.")
    var deviceBizType: String?
    @Option(help: "An instance whose signature switch is on; needs --app-key. Adds the cases of signed connects.")
    var signedInstance: String?
    @OptionGroup var appKey: AppKeyOptions
    @Option(help: "An instance that binds device ids to secrets. Adds the cases of device secrets.")
    var bindingInstance: String?
    @OptionGroup var options: ConformanceOptions

    /// Enough that the cases that wait do so together.
    private static let atOnce = 12

    func validate() throws {
        guard (1...65_535).contains(port) else { throw ValidationError("--port takes 1 to 65535.") }
        guard (signedInstance == nil) == (appKey.appKey == nil) else {
            throw ValidationError("--signed-instance and --app-key belong together.")
        }
    }

    func run() async throws {
        let key = try appKey.key()
        let proofs = (key == nil ? [] : GatewayCases.signed) + (bindingInstance == nil ? [] : GatewayCases.secrets)
        let cases = try options.selected(of: GatewayCases.all + proofs)
        if options.list { return options.show(cases) }
        guard FileManager.default.isReadableFile(atPath: ca) else {
            throw ValidationError("no certificate authority at \(ca): run deploy/up, or give --ca")
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
