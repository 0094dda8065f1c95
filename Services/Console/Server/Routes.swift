import BackendCalls
import BusMessages
import ServiceKit
import SyncModel

/// The table of all routes.
enum Routes {
    /// Pushes in flight at one time. Operators make them by hand, so a low limit is enough.
    private static let pushesMaximum = 64
    /// Streams (live pages and exports) at one time: of all accounts, and of one account.
    private static let (streamsMaximum, accountStreamsMaximum) = (128, 16)

    static func all(
        _ context: ServiceContext, _ control: ControlConnection, _ database: Database, _ board: ProcessReportBoard
    ) -> [Route] {
        let settings = context.settings
        let controlService = ControlService(bus: control.bus, directory: control.directory)
        let records = AuditRecorder(database: database)
        let signIn = SignIn(
            database: database, records: records,
            seal: SecondFactorSeal(text: settings[ConsoleSettings.sealingKey]))
        let devices = ConsoleSettings.devices(settings)
        let streams = StreamCount(maximum: streamsMaximum, accountMaximum: accountStreamsMaximum)
        let operations = OperationIntake(
            directory: control.directory, bus: control.bus, queue: .people, actor: "console")
        let intake = PushIntake(
            directory: control.directory, submission: BusSubmission(bus: control.bus), operations: operations,
            inFlightMaximum: pushesMaximum)
        let routes =
            SessionRoutes(
                database: database, sessions: Sessions(database: database), signIn: signIn,
                requiresSecondFactor: ConsoleSettings.entry(settings).requiresSecondFactor
            ).routes
            + AccountRoutes(database: database, control: controlService).routes
            + InstanceRoutes(control: controlService, devices: devices).routes
            + OverviewRoutes(
                database: database, control: controlService, board: board, sessions: Sessions(database: database),
                health: context.health, streams: streams
            ).routes
            + ConfigurationRoutes(control: controlService).routes
            + PushRoutes(control: controlService, intake: intake).routes
            + RolloutRoutes(control: controlService).routes
            + DataRoutes(database: database, control: controlService).routes
            + TraceRoutes(database: database, control: controlService, operations: operations).routes
            + DeadLetterRoutes(control: controlService).routes
            + DeviceOperationRoutes(control: controlService).routes
            + DiagnosisRoutes(database: database, control: controlService, intake: intake).routes
            + DeviceRoutes(control: controlService, devices: devices).routes
            + RecordRoutes(database: database, control: controlService, streams: streams).routes
        return routes + APIRoutes(routes: routes).own
    }
}
