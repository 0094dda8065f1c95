import ArgumentParser
import Credentials
import Crypto
import Foundation
import ServiceKit

/// The key with which the tool signs its calls of the API, where an instance wants them signed (spec H9).
struct SigningArguments: ParsableArguments {
    @Option(help: "Sign calls with this key; or MSS_API_KEY.")
    var key: String?
    @Option(help: "The file with the key's secret, as mssctl key create printed it; or MSS_API_SECRET_FILE.")
    var secretFile: String?

    private static let keySetting = SettingKey<String>.text(
        "MSS_API_KEY", "the key that signs calls of the API", example: "k0123456789abcdef", default: "")
    private static let secretSetting = SettingKey<String>.secret(
        "MSS_API_SECRET", "the key's secret in Base64", default: "")

    /// Nil when neither arguments nor settings name a key.
    func signer() throws -> RequestSigner? {
        let settings = try ToolSettings.read([Self.keySetting.erased, Self.secretSetting.erased])
        let keyID = key ?? settings[Self.keySetting]
        guard !keyID.isEmpty else { return nil }
        let text = try secretFile.map { try SecretFile.text(of: $0) } ?? settings[Self.secretSetting]
        guard let secret = Data(base64Encoded: text), !secret.isEmpty else {
            throw ValidationError("the secret of \(keyID) is not there or no Base64; give --secret-file")
        }
        return RequestSigner(keyID: keyID, secret: SymmetricKey(data: secret))
    }
}
