import ArgumentParser
import Credentials
import ServiceKit

/// `mssctl key ring`: what a tier gets of the master keys, so that it can open the secrets of its purpose alone
/// (reliability SEC16).
struct KeyRingCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ring",
        abstract: "Prints the MSS_SEALING_KEYS of a tier; they are secret.",
        discussion: """
            Derives them from the master keys that MSS_MASTER_KEYS or MSS_MASTER_KEYS_FILE holds; asks no server. \
            backend: for ingests, device: for gateways, callout: for validators.
            """)

    @Option(help: "Whose secrets they open: of backends, devices, or our questions to the tenant.")
    var purpose: KeyCommand.Purpose

    func run() throws {
        let masters = try ToolSettings.read([KeyRingSetting.masters.erased])[KeyRingSetting.masters]
        guard !masters.isEmpty else { throw ValidationError("there are no master keys; set MSS_MASTER_KEYS_FILE") }
        print(masters.sealing(for: purpose.model).text)
    }
}
