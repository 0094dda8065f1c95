import Foundation
package import SyncModel

/// The `meta.config` that an app of an instance is built with: the members that apps read (spec C12, K7).
package struct MetaConfigFile: Encodable {
    let instanceId: String
    let workspaceId: String
    let appId: String
    let syncserver: String
    let syncport: String
    let appKey: String?
    let appSecret: String?

    /// The service takes the instance's id as a whole; its parts are for the guide's readers.
    ///
    /// - Parameters:
    ///   - server: the gateway's name or address, as devices reach it.
    ///   - key: the device key that the app signs with.
    ///   - secret: the key's, in Base64.
    package init(
        _ instanceID: InstanceID, server: String, port: Int, key: String? = nil, secret: String? = nil
    ) {
        let parts = instanceID.text.split(separator: "_", maxSplits: 1).map(String.init)
        instanceId = instanceID.text
        workspaceId = parts.count == 2 ? parts[0] : ""
        appId = parts.last ?? instanceID.text
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
