import ArgumentParser
import MobileSync

/// The key that a device of this tool signs its connects with.
struct AppKeyOptions: ParsableArguments {
    @Option(help: "The id of a device key of the instance, to sign connects with.")
    var appKey: String?
    @Option(help: "A file with the key's secret, as mssctl key create printed it.", completion: .file())
    var appSecretFile: String?

    func validate() throws {
        guard (appKey == nil) == (appSecretFile == nil) else {
            throw ValidationError("--app-key and --app-secret-file belong together.")
        }
    }

    /// The key; nil when none was named.
    func key() throws -> SyncAppKey? {
        guard let appKey, let appSecretFile else { return nil }
        return try SyncAppKey(id: appKey, secret: SecretFile.text(of: appSecretFile))
    }
}
