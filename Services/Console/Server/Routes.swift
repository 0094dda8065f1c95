import BackendCalls
import BusMessages
import ServiceKit
import SyncModel

/// Everything that the console answers.
enum Routes {
    /// Pushes at one time: people make them.
    private static let pushesMaximum = 64
    /// Streams at one time, live pages and exports, in all and of one account.
    private static let (streamsMaximum, accountStreamsMaximum) = (128, 16)

    static func all(
        _ context: ServiceContext, _ control: ControlConnection, _ database: Database, _ board: ProcessReportBoard
    ) -> [Route] {
        let settings = context.settings
        let desk = ControlDesk(bus: control.bus, directory: control.directory)
        let records = RecordDesk(database: database)
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
            SessionArea(
                database: database, sessions: Sessions(database: database), signIn: signIn,
                requiresSecondFactor: ConsoleSettings.entry(settings).requiresSecondFactor
            ).routes
            + AccountArea(database: database, desk: desk).routes
            + InstanceArea(desk: desk, devices: devices).routes
            + OverviewArea(
                database: database, desk: desk, board: board, sessions: Sessions(database: database),
                health: context.health, streams: streams
            ).routes
            + ConfigurationArea(desk: desk).routes
            + PushArea(desk: desk, intake: intake).routes
            + RolloutArea(desk: desk).routes
            + DataArea(database: database, desk: desk).routes
            + TraceArea(database: database, desk: desk, operations: operations).routes
            + DeadLetterArea(desk: desk).routes
            + DeviceOperationArea(desk: desk).routes
            + DiagnosisArea(database: database, desk: desk, intake: intake).routes
            + DeviceArea(desk: desk, devices: devices).routes
            + RecordArea(database: database, desk: desk, streams: streams).routes
        return routes + APIArea(routes: routes).own
    }
}
