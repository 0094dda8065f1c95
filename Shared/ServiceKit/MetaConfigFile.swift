import Foundation
package import SyncModel

/// The `meta.config` that an app of an instance is built with: the members that apps read (spec C12, K7).
package struct MetaConfigFile: Encodable {
    let instanceId: String
    let workspaceId: String?
    let appId: String?
    let syncserver: String
    let syncport: String
    let appKey: String?
    let appSecret: String?

    /// The service takes the instance's id as a whole. Its parts are for the guide's readers, and left out when they
    /// are not certain: they are those of the mobile gateway where these make the id, otherwise `InstanceID.parts`.
    ///
    /// - Parameters:
    ///   - server: the gateway's name or address, as devices reach it.
    ///   - key: the device key that the app signs with.
    ///   - secret: the key's, in Base64.
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
