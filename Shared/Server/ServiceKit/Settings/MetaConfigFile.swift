import Foundation
package import SyncModel

/// The `meta.config` file that is built into an app of an instance, with the members that apps read (C12, K7).
package struct MetaConfigFile: Encodable {
    let instanceId: String
    let workspaceId: String?
    let appId: String?
    let syncserver: String
    let syncport: String
    let appKey: String?
    let appSecret: String?

    /// The service reads the instance id as a whole. The file also names its two parts for readers of the guide: those
    /// of the mobile gateway if they form the id, otherwise `InstanceID.parts`. Uncertain parts are left out.
    ///
    /// - Parameters:
    ///   - server: the host name or address at which devices reach the gateway.
    ///   - key: the device key that the app signs with.
    ///   - secret: the secret of the key, in Base64.
    package init(
        _ instance: Instance, server: String, port: Int, key: String? = nil, secret: String? = nil
    ) {
        instanceId = instance.id.text
        if case .mobileGateway(let gateway) = instance.validatorForm,
            "\(gateway.workspaceID)_\(gateway.appID)".isSame(as: instanceId)
        {
            (workspaceId, appId) = (gateway.workspaceID, gateway.appID)
        } else {
            let parts = instance.id.parts
            (workspaceId, appId) = (parts?.workspaceID, parts?.appID)
        }
        syncserver = server
        syncport = String(port)
        appKey = key
        appSecret = secret
    }

    /// The file's text.
    package var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) + "\n" } ?? ""
    }
}
