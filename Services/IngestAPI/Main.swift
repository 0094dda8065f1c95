import BackendCalls
import Credentials
import ServiceKit
import ServiceLifecycle
import SyncModel

/// The ingest API: accepts pushes over HTTP and answers when they are stored. Any number of processes run in parallel.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-ingest", settings: IngestSettings.keys, problems: IngestSettings.problems) {
            context in
            let settings = context.settings
            let keys = OpenedKeys(ring: settings[KeyRingSetting.sealing(for: .backend)])
            let control = ControlConnection(context, keysFor: .backend) { keys.forgetAll() }
            let metrics = IngestMetrics()
            let operations = OperationIntake(directory: control.directory, bus: control.bus, actor: "api")
            let submission = TracedSubmission.around(BusSubmission(bus: control.bus), tracer: context.tracer)
            let intake = PushIntake(
                directory: control.directory, submission: submission, operations: operations,
                inFlightMaximum: settings[IngestSettings.inFlightMaximum], whenInFlight: metrics.inFlight)
            let admission = RequestAdmission(
                directory: control.directory, keys: keys, bus: control.bus, logger: context.logger)
            let mirror = IngestSettings.mirror(settings, logger: context.logger)
            let responder = IngestResponder(
                admission: admission, intake: intake, quotas: PushQuotas(bus: control.bus) { WallTime.now },
                operations: operations, bodies: BodyBudget(maximum: settings[IngestSettings.bodyBytes]),
                health: context.health, metrics: metrics, logger: context.logger, mirror: mirror)
            let certificates = try IngestSettings.certificates(settings, logger: context.logger)
            let server = IngestServer(
                host: settings[IngestSettings.host], port: settings[IngestSettings.port], responder: responder,
                certificates: certificates,
                plainNetworks: IngestSettings.plainHTTPNetworks(settings, logger: context.logger),
                limits: IngestSettings.limits(settings))
            let optional: [(any Service)?] = [certificates, mirror]
            return [control.bus, control.directory] + optional.compactMap { $0 } + [server]
        }
    }
}
