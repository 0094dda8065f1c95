import ArgumentParser
import SyncModel

/// Which devices a push is restricted to (spec D12).
struct RestrictionArguments: ParsableArguments {
    @Option(help: "Only for iOS or Android.")
    var os: String?
    @Option(help: "Only from this app version on.")
    var minVersion: String?
    @Option(help: "Only up to this app version.")
    var maxVersion: String?

    /// The one that was named; nil: none was, or one that is not known.
    var operatingSystem: OperatingSystem? { os.flatMap { OperatingSystem(name: $0) } }
}
