import ArgumentParser
import BareChain
import Conformance
import LoadGenerator
import ServiceKit
import Torture

/// The tool for operators and developers.
@main
struct ControlTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mssctl", abstract: "Operates the Mobile Sync Service.", version: "mssctl \(ServiceMain.version)",
        subcommands: [
            SecretsCommand.self, MigrateCommand.self, InstanceCommand.self, ConfigCommand.self, KeyCommand.self,
            ApplyCommand.self, ExportCommand.self, PushCommand.self, PushGlobalCommand.self, RolloutCommand.self,
            RecallCommand.self,
            RevokeCommand.self, ExplainCommand.self, DevicesCommand.self, FiguresCommand.self, RecordsCommand.self,
            DeadLettersCommand.self, OperationsCommand.self, SubmitCommand.self, CheckResourcesCommand.self,
            ConsoleCommand.self, DoctorCommand.self, SupportBundleCommand.self,
            RestoredCommand.self, ListenCommand.self, LoadCommand.self, RatioCommand.self, BareChainCommand.self,
            ConformanceCommand.self, TortureCommand.self,
        ])

    /// Core dumps are off, because the process has passwords and secrets in memory (SEC16).
    static func main() async {
        CoreDumps.switchOff()
        await main(nil)
    }
}
