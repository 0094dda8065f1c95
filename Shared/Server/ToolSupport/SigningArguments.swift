package import ArgumentParser
package import Credentials
import Crypto
import Foundation
package import MobileSync
import ServiceKit

/// The key with which the tool signs API calls, if an instance requires signatures (H9).
package struct SigningArguments: ParsableArguments {
    @Option(help: "Sign calls with this key; MSS_API_KEY when absent.")
    package var key: String?
    @Option(help: "File with the secret of the key, as printed by mssctl key create; MSS_API_SECRET_FILE when absent.")
    package var secretFile: String?

    package init() {}

    private static let keySetting = SettingKey<String>.text(
        "MSS_API_KEY", "the key that signs calls of the API", example: "k0123456789abcdef", default: "")
    private static let secretSetting = SettingKey<String>.secret(
        "MSS_API_SECRET", "the key's secret in Base64", default: "")

    /// The signer. The value is nil if neither arguments nor settings name a key.
    package func signer() throws -> RequestSigner? {
        let settings = try ToolSettings.read([Self.keySetting.erased, Self.secretSetting.erased])
        let keyID = key ?? settings[Self.keySetting]
        guard !keyID.isEmpty else { return nil }
        let text = try secretFile.map { try SecretFile.text(of: $0) } ?? settings[Self.secretSetting]
        guard let secret = Data(base64Encoded: text), !secret.isEmpty else {
            throw ValidationError("the secret of \(keyID) is missing or not Base64: name its file with --secret-file")
        }
        return RequestSigner(keyID: keyID, secret: SymmetricKey(data: secret))
    }
}

/// The device key with which a device of this tool signs its connects.
package struct AppKeyOptions: ParsableArguments {
    @Option(help: "Id of a device key of the instance, to sign connects.")
    package var appKey: String?
    @Option(help: "File with the secret of the key, as printed by mssctl key create.", completion: .file())
    package var appSecretFile: String?

    package init() {}

    package func validate() throws {
        guard (appKey == nil) == (appSecretFile == nil) else {
            throw ValidationError("--app-key and --app-secret-file need each other.")
        }
    }

    /// The key. The value is nil if the options name none.
    package func key() throws -> SyncAppKey? {
        guard let appKey, let appSecretFile else { return nil }
        return try SyncAppKey(id: appKey, secret: SecretFile.text(of: appSecretFile))
    }
}
